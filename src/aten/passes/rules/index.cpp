#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"
#include "aten/shapes.h"

#include <algorithm>

// Writes and reads by index: index_put, scatter.src, scatter_add, gather, slices.
namespace chute::aten {

namespace {

V index_put(Emit &e, V x, const Values &indices, V values, bool accumulate) {
  Values operands{x};
  operands.insert(operands.end(), indices.begin(), indices.end());
  operands.push_back(values);
  return e.op(op::index_put, operands, {{"accumulate", Attr::of_bool(accumulate)}});
}

/// index_put with an index tensor for `dim` alone.
V put_at(Emit &e, V x, int dim, V index, V values, bool accumulate) {
  Values indices(size_t(dim), nullptr);
  indices.push_back(index);
  return index_put(e, x, indices, values, accumulate);
}

V index_write(Emit &e, bool accumulate) {
  V x = e.in(0), index = e.in(1), source = e.in(2);
  const int rank = x->type().rank();
  const int dim = e.dim("dim", rank);
  if (rank == 0)
    return accumulate ? e.add(x, e.view(source, {})) : e.view(source, {});
  if (index->type().rank() == 0)
    index = e.view(index, {1});
  source = e.cast(source, x->type().element());
  if (accumulate && e.number("alpha") != 1)
    source = e.mul(source, e.scalar(e.attr("alpha"), x->type().element()));
  return put_at(e, x, dim, index, source, accumulate);
}

V index_fill(Emit &e) {
  V x = e.in(0), index = e.in(1);
  const int dim = e.dim("dim", x->type().rank());
  const ElementType t = x->type().element();
  V value = e.root().opcode() == op::index_fill_int_Scalar ? e.scalar(e.attr("value"), t)
                                                           : e.cast(e.in(2), t);
  if (x->type().rank() == 0)
    return value;
  return put_at(e, x, dim, index, value, false);
}

V scatter_value(Emit &e) {
  // Repeated indices are fine here, all write the same; scatter.src may not have them (targets add
  // up, or leave open which one counts). So: where something is written at all.
  V x = e.in(0), index = e.in(1);
  V ones = e.full(e.shape_of(index), 1.0, ElementType::F32);
  V written = e.op(op::scatter_add, {e.full(e.shape(), 0.0, ElementType::F32), index, ones},
                   {{"dim", Attr::of_int(e.dim("dim", x->type().rank()))}});
  return e.where(e.gt(written, 0.0), e.scalar(e.attr("value"), x->type().element()), x);
}

/// `src` written over x[.., start:end:step, ..].
V write_slice(Emit &e, V x, V src, int dim, SymInt start, SymInt end, i64 step) {
  const SymInt n = x->type().dim(dim);
  src = e.cast(src, x->type().element());
  if (step == 1) {
    if (start == SymInt(0) && end == n)
      return src;
    Values parts;
    if (start != SymInt(0))
      parts.push_back(e.slice(x, dim, 0, start));
    parts.push_back(src);
    if (end != n)
      parts.push_back(e.slice(x, dim, end, n));
    return e.cat(parts, dim);
  }
  if (start.is_symbolic() || end.is_symbolic())
    return e.reject("a strided write with bounds that are not static");
  std::vector<i64> at;
  for (i64 i = start.value(); i < end.value(); i += step)
    at.push_back(i);
  if (at.empty())
    return x;
  return put_at(e, x, dim, e.i64s(at), src, false);
}

V slice_scatter(Emit &e) {
  V x = e.in(0);
  const int dim = e.dim("dim", x->type().rank());
  const Attr start = e.attr("start"), end = e.attr("end");
  const i64 step = e.integer("step");
  const SliceRange r = resolve_slice(
      e.sym(), x->type().dim(dim), start.is_none() ? std::nullopt : std::optional(start.as_int()),
      end.is_none() ? std::nullopt : std::optional(end.as_int()), step);
  Shape shape = e.shape_of(x);
  shape[size_t(dim)] = r.length;
  return write_slice(e, x, e.expand(e.in(1), shape), dim, r.start, r.end, step);
}

V select_scatter(Emit &e) {
  V x = e.in(0);
  const int dim = e.dim("dim", x->type().rank());
  SymInt index = e.size("index");
  if (index.is_static() && index.value() < 0)
    index = e.sym().add(index, x->type().dim(dim));
  Shape shape = e.shape_of(x);
  shape[size_t(dim)] = 1;
  V src = e.in(1);
  if (src->type().rank() + 1 == x->type().rank())
    src = e.unsqueeze(src, dim);
  return write_slice(e, x, e.expand(src, shape), dim, index, e.sym().add(index, 1), 1);
}

V diagonal_scatter(Emit &e) {
  V x = e.in(0), src = e.in(1);
  const int rank = x->type().rank();
  const int d1 = e.dim("dim1", rank), d2 = e.dim("dim2", rank);
  const i64 offset = e.integer("offset");
  const SymInt length = src->type().dim(rank - 2);
  Axes order{d1, d2}, last{rank - 2}, back(size_t(rank), 0);
  for (int d = 0; d < rank; ++d)
    if (d != d1 && d != d2)
      order.push_back(d);
  for (int d = 0; d < rank; ++d)
    back[size_t(order[size_t(d)])] = d;
  for (int d = 0; d < rank - 2; ++d)
    last.push_back(d);
  const SymInt r0 = std::max<i64>(-offset, 0), c0 = std::max<i64>(offset, 0);
  V rows = e.arange(r0, e.sym().add(r0, length)), columns = e.arange(c0, e.sym().add(c0, length));
  V y = index_put(e, e.permute(x, order), {rows, columns},
                  e.cast(e.permute(src, last), x->type().element()), false);
  return e.permute(y, back);
}

/// Writes into the flat tensor at positions computed here.
V as_strided_scatter(Emit &e) {
  const auto size = e.ints("size"), stride = e.ints("stride");
  const i64 offset = e.given("storage_offset") ? e.integer("storage_offset") : 0;
  if (e.failed())
    return nullptr;
  i64 count = 1;
  for (i64 s : size)
    count *= s;
  std::vector<i64> at(size_t(count), offset);
  i64 inner = 1;
  for (size_t i = size.size(); i-- > 0;) {
    for (i64 n = 0; n < count; ++n)
      at[size_t(n)] += n / inner % size[i] * stride[i];
    inner *= size[i];
  }
  V x = e.in(0);
  V flat = e.view(x, {e.mul_sizes(e.shape_of(x))});
  V src = e.view(e.cast(e.in(1), x->type().element()), {count});
  return e.view(put_at(e, flat, 0, e.i64s(at), src, false), e.shape());
}

V put_flat(Emit &e) {
  V x = e.in(0), at = e.in(1), src = e.in(2);
  V flat = e.view(x, {e.mul_sizes(e.shape_of(x))});
  const SymInt n = e.mul_sizes(e.shape_of(at));
  return e.view(put_at(e, flat, 0, e.view(at, {n}), e.view(src, {n}), e.flag("accumulate")),
                e.shape());
}

/// Columns back into a picture: every patch is added where it came from.
V col2im(Emit &e) {
  const auto size = e.ints("output_size", 2), k = e.ints("kernel_size", 2),
             d = e.ints("dilation", 2), p = e.ints("padding", 2), s = e.ints("stride", 2);
  V x = e.in();
  const bool single = x->type().rank() == 2;
  if (single)
    x = e.unsqueeze(x, 0);
  if (e.failed() || !x->type().has_static_shape())
    return e.reject("columns of a size that is not static");
  const i64 h = size[0] + 2 * p[0], w = size[1] + 2 * p[1];
  const i64 rows = (h - d[0] * (k[0] - 1) - 1) / s[0] + 1;
  const i64 columns = (w - d[1] * (k[1] - 1) - 1) / s[1] + 1;
  std::vector<i64> at;
  for (i64 ky = 0; ky < k[0]; ++ky)
    for (i64 kx = 0; kx < k[1]; ++kx)
      for (i64 r = 0; r < rows; ++r)
        for (i64 c = 0; c < columns; ++c)
          at.push_back((ky * d[0] + r * s[0]) * w + kx * d[1] + c * s[1]);
  const i64 batch = x->type().dim(0).value();
  const i64 channels = x->type().dim(1).value() / (k[0] * k[1]);
  V zeros = e.full({batch, channels, h * w}, 0, x->type().element());
  V src = e.view(x, {batch, channels, i64(at.size())});
  V y = e.view(put_at(e, zeros, 2, e.i64s(at), src, true), {batch, channels, h, w});
  y = e.slice(e.slice(y, 2, p[0], p[0] + size[0]), 3, p[1], p[1] + size[1]);
  return single ? e.squeeze(y, 0) : y;
}

V take_along(Emit &e) {
  V x = e.in(0), index = e.in(1);
  if (!e.given("dim")) {
    x = e.view(x, {e.mul_sizes(e.shape_of(x))});
    index = e.view(index, {e.mul_sizes(e.shape_of(index))});
    return e.op(op::gather, {x, index}, {{"dim", Attr::of_int(0)}});
  }
  const int dim = e.dim("dim", x->type().rank());
  Shape sx = e.shape(), si = e.shape();
  sx[size_t(dim)] = x->type().dim(dim);
  return e.op(op::gather, {e.expand(x, sx), e.expand(index, si)}, {{"dim", Attr::of_int(dim)}});
}

V one_hot(Emit &e) {
  const i64 classes = e.integer("num_classes");
  if (classes < 0)
    return e.reject("one_hot without a number of classes");
  V x = e.in();
  V range = e.cast(e.arange(0, classes), x->type().element());
  return e.cast(e.eq(e.unsqueeze(x, x->type().rank()), range), ElementType::I64);
}

V gather_scalar(Emit &e) {
  return e.in()->type().rank() == 0 ? e.view(e.in(), e.shape()) : nullptr;
}

/// A rank-0 index of index_select is one index; a rank-0 operand has one element.
V index_select(Emit &e) {
  V x = e.in(0), index = e.in(1);
  if (x->type().rank() > 0 && index->type().rank() == 1)
    return nullptr;
  V source = x->type().rank() == 0 ? e.view(x, {1}) : x;
  V at = index->type().rank() == 0 ? e.view(index, {1}) : index;
  return e.view(e.index_select(source, e.dim("dim", source->type().rank()), at), e.shape());
}

/// An index list without a single index is the operand itself.
V index_nothing(Emit &e) {
  for (V i : e.list(1))
    if (i)
      return nullptr;
  return e.in();
}

} // namespace

void add_index_rules(pass::PatternSet &set) {
  set.add("index-copy", {op::index_copy}, rule<[](Emit &e) { return index_write(e, false); }>);
  set.add("index-add", {op::index_add}, rule<[](Emit &e) { return index_write(e, true); }>);
  set.add("index-fill", {op::index_fill_int_Scalar, op::index_fill_int_Tensor}, rule<index_fill>);
  set.add("index-nothing", {op::index_Tensor}, rule<index_nothing>);
  set.add("index-select", {op::index_select}, rule<index_select>);
  set.add("gather-scalar", {op::gather}, rule<gather_scalar>);
  set.add("scatter-value", {op::scatter_value}, rule<scatter_value>);
  set.add("slice-scatter", {op::slice_scatter}, rule<slice_scatter>);
  set.add("select-scatter", {op::select_scatter}, rule<select_scatter>);
  set.add("diagonal-scatter", {op::diagonal_scatter}, rule<diagonal_scatter>);
  set.add("as-strided-scatter", {op::as_strided_scatter}, rule<as_strided_scatter>);
  set.add("put", {op::put}, rule<put_flat>);
  set.add("col2im", {op::col2im}, rule<col2im>);
  set.add("take", {op::take}, rule<[](Emit &e) {
            V x = e.view(e.in(0), {e.mul_sizes(e.shape_of(e.in(0)))});
            // Unlike index_select's, these may be negative.
            return e.op(op::index_Tensor, {x, e.in(1)});
          }>);
  set.add("take-along-dim", {op::take_along_dim}, rule<take_along>);
  set.add("one-hot", {op::one_hot}, rule<one_hot>);
}

} // namespace chute::aten

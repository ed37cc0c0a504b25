#include "aten/passes/view_step.h"

#include "aten/ops.h"
#include "aten/shapes.h"
#include "ir/context.h"
#include "ir/sym_table.h"

#include <algorithm>

namespace chute::aten {

namespace {

using ir::Attr;
using ir::SymInt;
using Kind = ViewStep::Kind;

int wrap(i64 d, int rank) {
  const int n = std::max(rank, 1);
  return static_cast<int>(d < 0 ? d + n : d);
}

int dim_attr(const ir::Op &op, std::string_view name, int rank) {
  const Attr a = op.attr(name);
  return a.kind() == ir::AttrKind::Int && a.as_int().is_static() ? wrap(a.as_int().value(), rank)
                                                                 : 0;
}

std::vector<i64> int_list(Attr a) {
  std::vector<i64> out;
  if (a.kind() == ir::AttrKind::Int)
    out.push_back(a.as_int().value());
  if (a.kind() == ir::AttrKind::Ints)
    for (SymInt s : a.as_ints())
      out.push_back(s.value());
  return out;
}

std::optional<SymInt> optional_int(Attr a) {
  return a.kind() == ir::AttrKind::Int ? std::optional(a.as_int()) : std::nullopt;
}

std::vector<int> swapped(int rank, int a, int b) {
  std::vector<int> order;
  for (int i = 0; i < rank; ++i)
    order.push_back(i);
  if (rank > 0)
    std::swap(order[size_t(wrap(a, rank))], order[size_t(wrap(b, rank))]);
  return order;
}

/// The kind of alias by operator, before layouts are looked at.
ViewStep step_of(ir::Context &ctx, const ir::Op &op, u32 index) {
  const ir::Type from = op.operand(0)->type(), to = op.result(index)->type();
  const int rank = from.rank();
  ViewStep s;
  const auto permute = [&](std::vector<int> order) {
    s.kind = Kind::Permute;
    s.order = std::move(order);
  };
  const auto part = [&](int dim) { // one of several pieces along dim
    s.kind = Kind::Slice;
    s.dim = dim;
    for (u32 i = 0; i < index; ++i)
      s.start = ctx.sym().add(s.start, op.result(i)->type().dim(dim));
    s.end = ctx.sym().add(s.start, to.dim(dim));
  };
  switch (ir::index(op.opcode())) {
#define ON(name) case ir::index(op::name):
    ON(alias)
    ON(detach)
    ON(detach_)
    ON(lift)
    ON(lift_fresh) ON(positive) ON(data) ON(resolve_conj) ON(resolve_neg) s.kind = Kind::Same;
    break;
    ON(to_device)
    ON(to_dtype)
    ON(to_dtype_layout)
    ON(to_other)
    ON(to_prim_dtype)
    s.kind = op.attr("copy").kind() == ir::AttrKind::Bool && op.attr("copy").as_bool() ? Kind::Copy
             : from.element() == to.element()                                          ? Kind::Same
                                                                                       : Kind::Copy;
    break;
    ON(type_as) s.kind = from.element() == to.element() ? Kind::Same : Kind::Copy;
    break;
    ON(dropout) s.kind = op.attr("train").as_bool() ? Kind::Copy : Kind::Same;
    break;
    ON(slice_Tensor) {
      s.kind = Kind::Slice;
      s.dim = dim_attr(op, "dim", rank);
      s.step = op.attr("step").as_int();
      const SliceRange r = resolve_slice(ctx.sym(), from.dim(s.dim), optional_int(op.attr("start")),
                                         optional_int(op.attr("end")), s.step);
      s.start = r.start;
      s.end = r.end;
      break;
    }
    ON(narrow) {
      s.kind = Kind::Slice;
      s.dim = dim_attr(op, "dim", rank);
      s.start = op.attr("start").as_int();
      if (s.start.is_static() && s.start.value() < 0)
        s.start = ctx.sym().add(s.start, from.dim(s.dim));
      s.end = ctx.sym().add(s.start, op.attr("length").as_int());
      break;
    }
    ON(split_Tensor)
    ON(split_sizes)
    ON(split_with_sizes)
    ON(chunk)
    ON(unsafe_chunk)
    ON(tensor_split_indices) ON(tensor_split_sections) part(dim_attr(op, "dim", rank));
    break;
    ON(hsplit_int) part(rank == 1 ? 0 : 1);
    break;
    ON(vsplit_int) part(0);
    break;
    ON(dsplit_int) part(2);
    break;
    ON(unbind_int) s.kind = Kind::Select;
    s.dim = dim_attr(op, "dim", rank);
    s.start = static_cast<i64>(index);
    break;
    ON(select_int) s.kind = Kind::Select;
    s.dim = dim_attr(op, "dim", rank);
    s.start = op.attr("index").as_int();
    if (s.start.is_static() && s.start.value() < 0)
      s.start = ctx.sym().add(s.start, from.dim(s.dim));
    break;
    ON(permute) {
      std::vector<int> order;
      for (i64 d : int_list(op.attr("dims")))
        order.push_back(wrap(d, rank));
      permute(std::move(order));
      break;
    }
    ON(transpose_int)
    ON(swapdims) permute(swapped(rank, dim_attr(op, "dim0", rank), dim_attr(op, "dim1", rank)));
    break;
    ON(swapaxes)
    permute(swapped(rank, dim_attr(op, "axis0", rank), dim_attr(op, "axis1", rank)));
    break;
    ON(t) permute(rank < 2 ? swapped(rank, 0, 0) : swapped(rank, 0, 1));
    break;
    ON(mT) ON(mH) ON(adjoint) permute(swapped(rank, -2, -1));
    break;
    ON(numpy_T) {
      std::vector<int> order = swapped(rank, 0, 0);
      std::reverse(order.begin(), order.end());
      permute(std::move(order));
      break;
    }
    ON(movedim_int)
    ON(movedim_intlist)
    ON(moveaxis_int)
    ON(moveaxis_intlist)
    permute(movedim_order(rank, int_list(op.attr("source")), int_list(op.attr("destination"))));
    break;
    ON(view)
    ON(reshape)
    ON(reshape_as)
    ON(view_as)
    ON(flatten_using_ints)
    ON(unflatten_int)
    ON(squeeze)
    ON(squeeze_dim)
    ON(squeeze_dims)
    ON(unsqueeze) ON(ravel) ON(atleast_1d) ON(atleast_2d) ON(atleast_3d) ON(contiguous)
        s.kind = Kind::Reshape;
    break;
    ON(expand) ON(expand_as) ON(broadcast_to) s.kind = Kind::Expand;
    break;
    ON(diagonal) s.kind = Kind::Diagonal;
    s.dim = dim_attr(op, "dim1", rank);
    s.other_dim = dim_attr(op, "dim2", rank);
    s.start = op.attr("offset").as_int();
    break;
    ON(as_strided) {
      s.kind = Kind::AsStrided;
      const auto strides = op.attr("stride").as_ints();
      s.strides.assign(strides.begin(), strides.end());
      s.start = optional_int(op.attr("storage_offset")).value_or(0);
      break;
    }
    ON(view_dtype) s.kind = from.element() == to.element() ? Kind::Same : Kind::Bits;
    break;
    ON(broadcast_tensors)
    ON(unfold) ON(real) ON(imag) ON(view_as_real) ON(view_as_complex) s.kind = Kind::Opaque;
    break;
#undef ON
  default: s.kind = op.has(ir::trait::kView) ? Kind::Opaque : Kind::Copy;
  }
  return s;
}

/// Strides of a reshape that shares memory; nullopt when it has to copy. Each run of new dimensions
/// must lie in a run of old ones that are contiguous among themselves.
std::optional<std::vector<SymInt>> reshape_strides(const Strides &parent, ir::Type from,
                                                   ir::Type to) {
  if (!parent.known || !from.has_static_shape() || !to.has_static_shape())
    return std::nullopt;
  std::vector<SymInt> out(size_t(to.rank()), 1);
  if (from.num_elements() == 0 || to.rank() == 0)
    return out;
  int d = to.rank() - 1;
  i64 chunk = 1, base = from.rank() ? parent.of.back().value() : 1;
  for (int i = from.rank() - 1; i >= 0; --i) {
    chunk *= from.dim(i).value();
    const bool run_ends = i == 0 || (from.dim(i - 1).value() != 1 &&
                                     parent.of[size_t(i) - 1].value() != chunk * base);
    if (!run_ends)
      continue;
    i64 seen = 1;
    while (d >= 0 && (seen < chunk || to.dim(d).value() == 1)) {
      out[size_t(d)] = seen * base;
      seen *= to.dim(d).value();
      --d;
    }
    if (seen != chunk)
      return std::nullopt;
    if (i > 0) {
      base = parent.of[size_t(i) - 1].value();
      chunk = 1;
    }
  }
  return d < 0 ? std::optional(out) : std::nullopt;
}

ir::Value *make(ir::Builder &b, ir::OpCode code, std::initializer_list<ir::Value *> operands,
                std::initializer_list<ir::NamedAttr> attrs, ir::Type type) {
  return b
      .create_typed(code, std::span<ir::Value *const>(operands.begin(), operands.size()),
                    std::span<const ir::NamedAttr>(attrs.begin(), attrs.size()), {&type, 1})
      ->result();
}

ir::Value *permuted(ir::Builder &b, ir::Value *x, const std::vector<int> &order, ir::Type type) {
  std::vector<SymInt> dims(order.begin(), order.end());
  return make(b, op::permute, {x}, {{"dims", b.context().ints_attr(dims)}}, type);
}

ir::Value *viewed(ir::Builder &b, ir::Value *x, ir::Type type) {
  return make(b, op::view, {x}, {{"size", b.context().ints_attr(type.shape())}}, type);
}

} // namespace

std::vector<int> movedim_order(int rank, const std::vector<i64> &source,
                               const std::vector<i64> &destination) {
  if (rank == 0) // the only dimensions that a scalar is given, 0 and -1, name nothing
    return {};
  std::vector<int> order(size_t(rank), -1);
  std::vector<bool> taken(size_t(rank), false);
  for (size_t i = 0; i < source.size(); ++i) {
    const int from = wrap(source[i], rank);
    order[size_t(wrap(destination[i], rank))] = from;
    taken[size_t(from)] = true;
  }
  int next = 0;
  for (int &d : order) {
    if (d >= 0)
      continue;
    while (taken[size_t(next)])
      ++next;
    d = next++;
  }
  return order;
}

Strides dense_strides(ir::Context &ctx, ir::Type type) {
  Strides s{true, std::vector<SymInt>(size_t(type.rank()), 1)};
  for (int d = type.rank() - 2; d >= 0; --d)
    s.of[size_t(d)] = ctx.sym().mul(s.of[size_t(d) + 1], type.dim(d + 1));
  return s;
}

bool is_dense(ir::Context &ctx, ir::Type type, const Strides &strides) {
  if (!strides.known)
    return false;
  const Strides dense = dense_strides(ctx, type);
  for (int d = 0; d < type.rank(); ++d)
    if (type.dim(d) != SymInt(1) && strides.of[size_t(d)] != dense.of[size_t(d)])
      return false;
  return true;
}

ViewStep view_step(ir::Context &ctx, const ir::Op &op, u32 index, const Strides &parent,
                   Strides &out) {
  ViewStep s = step_of(ctx, op, index);
  const ir::Type from = op.operand(0)->type(), to = op.result(index)->type();
  out = parent;
  switch (s.kind) {
  case Kind::Same: break;
  case Kind::Slice:
    if (out.known)
      out.of[size_t(s.dim)] = ctx.sym().mul(out.of[size_t(s.dim)], s.step);
    break;
  case Kind::Select:
    if (out.known)
      out.of.erase(out.of.begin() + s.dim);
    break;
  case Kind::Permute:
    for (size_t i = 0; out.known && i < s.order.size(); ++i)
      out.of[i] = parent.of[size_t(s.order[i])];
    break;
  case Kind::Reshape: {
    if (is_dense(ctx, from, parent)) {
      out = dense_strides(ctx, to);
      if (from == to)
        s.kind = Kind::Same;
      break;
    }
    const auto strides = reshape_strides(parent, from, to);
    out = strides ? Strides{true, *strides} : dense_strides(ctx, to);
    // `view` and the squeezes never copy; the others do where the layout does not allow a view.
    const bool may_copy = op.opcode() == op::reshape || op.opcode() == op::reshape_as ||
                          op.opcode() == op::flatten_using_ints || op.opcode() == op::ravel ||
                          op.opcode() == op::contiguous;
    if (op.opcode() == op::contiguous || (may_copy && !strides && from != to))
      s.kind = Kind::Copy;
    else if (from == to)
      s.kind = Kind::Same;
    break;
  }
  case Kind::Expand: {
    const size_t lead = size_t(to.rank() - from.rank());
    for (size_t d = 0; out.known && d < size_t(from.rank()); ++d)
      if (from.dim(int(d)) != to.dim(int(d + lead)))
        out.of[d] = 0;
    if (out.known)
      out.of.insert(out.of.begin(), lead, 0);
    if (from == to)
      s.kind = Kind::Same;
    break;
  }
  case Kind::AsStrided: out = {true, s.strides}; break;
  case Kind::Copy: out = dense_strides(ctx, to); break;
  default: out = {}; break;
  }
  return s;
}

ir::Value *apply_step(ir::Builder &b, const ViewStep &s, ir::Value *parent, ir::Type type) {
  ir::Context &ctx = b.context();
  switch (s.kind) {
  case Kind::Same: return parent;
  case Kind::Slice:
    return make(b, op::slice_Tensor, {parent},
                {{"dim", Attr::of_int(s.dim)},
                 {"start", Attr::of_int(s.start)},
                 {"end", Attr::of_int(s.end)},
                 {"step", Attr::of_int(s.step)}},
                type);
  case Kind::Select:
    return make(b, op::select_int, {parent},
                {{"dim", Attr::of_int(s.dim)}, {"index", Attr::of_int(s.start)}}, type);
  case Kind::Permute: return permuted(b, parent, s.order, type);
  case Kind::Reshape: return viewed(b, parent, type);
  case Kind::Expand:
    return make(b, op::expand, {parent}, {{"size", ctx.ints_attr(type.shape())}}, type);
  case Kind::Diagonal:
    return make(b, op::diagonal, {parent},
                {{"offset", Attr::of_int(s.start)},
                 {"dim1", Attr::of_int(s.dim)},
                 {"dim2", Attr::of_int(s.other_dim)}},
                type);
  case Kind::AsStrided:
    return make(b, op::as_strided, {parent},
                {{"size", ctx.ints_attr(type.shape())},
                 {"stride", ctx.ints_attr(s.strides)},
                 {"storage_offset", Attr::of_int(s.start)}},
                type);
  case Kind::Bits:
    return make(b, op::view_dtype, {parent}, {{"dtype", Attr::of_element(type.element())}}, type);
  default: return nullptr;
  }
}

ir::Value *write_back(ir::Builder &b, const ViewStep &s, ir::Value *parent, ir::Value *value) {
  ir::Context &ctx = b.context();
  const ir::Type type = parent->type();
  switch (s.kind) {
  case Kind::Same: return value;
  case Kind::Slice:
    if (value->type() == type && s.step == SymInt(1))
      return value; // the whole of it
    return make(b, op::slice_scatter, {parent, value},
                {{"dim", Attr::of_int(s.dim)},
                 {"start", Attr::of_int(s.start)},
                 {"end", Attr::of_int(s.end)},
                 {"step", Attr::of_int(s.step)}},
                type);
  case Kind::Select:
    return make(b, op::select_scatter, {parent, value},
                {{"dim", Attr::of_int(s.dim)}, {"index", Attr::of_int(s.start)}}, type);
  case Kind::Permute: {
    std::vector<int> back(s.order.size());
    for (size_t i = 0; i < s.order.size(); ++i)
      back[size_t(s.order[i])] = static_cast<int>(i);
    return permuted(b, value, back, type);
  }
  case Kind::Reshape: return viewed(b, value, type);
  case Kind::Expand: {
    // Every repetition holds the same element: the first stands for all.
    const ir::Type wide = value->type();
    const int lead = wide.rank() - type.rank();
    std::vector<SymInt> shape(wide.shape().begin(), wide.shape().end());
    for (int d = 0; d < wide.rank(); ++d) {
      if (d >= lead && wide.dim(d) == type.dim(d - lead))
        continue;
      shape[size_t(d)] = 1;
      value = make(b, op::slice_Tensor, {value},
                   {{"dim", Attr::of_int(d)},
                    {"start", Attr::of_int(0)},
                    {"end", Attr::of_int(1)},
                    {"step", Attr::of_int(1)}},
                   ctx.with_shape(type, shape));
    }
    return viewed(b, value, type);
  }
  case Kind::Diagonal:
    return make(b, op::diagonal_scatter, {parent, value},
                {{"offset", Attr::of_int(s.start)},
                 {"dim1", Attr::of_int(s.dim)},
                 {"dim2", Attr::of_int(s.other_dim)}},
                type);
  case Kind::AsStrided:
    return make(b, op::as_strided_scatter, {parent, value},
                {{"size", ctx.ints_attr(value->type().shape())},
                 {"stride", ctx.ints_attr(s.strides)},
                 {"storage_offset", Attr::of_int(s.start)}},
                type);
  case Kind::Bits:
    return make(b, op::view_dtype, {value}, {{"dtype", Attr::of_element(type.element())}}, type);
  default: return nullptr;
  }
}

} // namespace chute::aten

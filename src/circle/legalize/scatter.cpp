// scatter.src, scatter_add and index_put.
//
// Constant positions need no scatter: the values are appended to the flattened tensor and one
// GATHER with a constant list picks the old or the new element. A single position known at run time
// (a slot of a KV cache) compares it with the positions of its dimension and selects. The rest is
// SCATTER_ND, which adds up what falls on the same position.
#include "circle/legalize/emit.h"

#include <algorithm>
#include <numeric>

namespace chute::circle {

namespace {

namespace a = aten::op;

i64 product(const Dims &d) {
  return std::accumulate(d.begin(), d.end(), i64{1}, std::multiplies());
}

/// Row-major positions of the elements of a tensor of shape `at` inside one with `strides`, leaving
/// out dimension `skip`.
Dims positions(const Dims &at, const Dims &strides, i64 skip) {
  Dims flat, counter(at.size(), 0);
  for (i64 n = product(at); n > 0; --n) {
    i64 p = 0;
    for (size_t d = 0; d < at.size(); ++d)
      p += static_cast<i64>(d) == skip ? 0 : counter[d] * strides[d];
    flat.push_back(p);
    for (size_t d = at.size(); d-- > 0;) {
      if (++counter[d] < at[d])
        break;
      counter[d] = 0;
    }
  }
  return flat;
}

/// Rows `rows[k]` of `x` (along dimension 0) become row k of `values`; the last one wins.
Value *replace_rows(Emit &e, Value *x, Value *values, const Dims &rows) {
  Dims pick(static_cast<size_t>(x->type().dim(0).value()));
  std::iota(pick.begin(), pick.end(), 0);
  const auto n = static_cast<i64>(pick.size());
  for (size_t k = 0; k < rows.size(); ++k)
    pick[static_cast<size_t>(rows[k])] = n + static_cast<i64>(k);
  Value *parts[] = {x, values};
  return e(op::GATHER, {e.concat(parts, 0), e.i32s(pick)}, {{"axis", of(i64{0})}});
}

Value *scatter_nd(Emit &e, Value *index, Value *updates, const Dims &shape) {
  const Dims column{index->type().dim(0).value(), 1};
  Value *where = e.reshape(e.cast(index, ElementType::I32), column);
  const SymDims dims(shape.begin(), shape.end());
  return e.typed(op::SCATTER_ND, {where, updates, e.i32s(shape)}, {},
                 e.context().tensor_type(updates->type().element(), dims));
}

/// Which rows of a tensor of that shape are among index[k] (run time): bool[rows, 1, …].
Value *rows_hit(Emit &e, Value *index, const Dims &shape) {
  const Dims counts{index->type().dim(0).value()};
  Value *ones = e.constant_ints(ElementType::I32, counts, Dims(static_cast<size_t>(counts[0]), 1));
  Value *hits = scatter_nd(e, index, ones, {shape[0]});
  Dims column(shape.size(), 1);
  column[0] = shape[0];
  return e.reshape(e(op::GREATER, {hits, e.like(hits, 0)}), column);
}

/// x with row index[k] (run time) replaced by row k of `values`, or with it added.
Value *update_rows(Emit &e, Value *x, Value *index, Value *values, bool accumulate) {
  const Dims shape = static_dims(x);
  Value *sums = scatter_nd(e, index, values, shape);
  if (accumulate)
    return e.add(x, sums);
  return e.select(rows_hit(e, index, shape), sums, x);
}

template <bool accumulate>
Value *scatter(Emit &e) {
  Value *x = e.arg(0), *index = e.arg(1), *source = e.arg(2);
  if (!x->type().has_static_shape() || !index->type().has_static_shape() ||
      !source->type().has_static_shape())
    return e.unsupported("over a shape known only at run time", "export with static shapes");
  const i64 rank = x->type().rank();
  if (rank == 0)
    return accumulate ? e.add(x, source) : source;
  i64 dim = e.integer("dim");
  dim += dim < 0 ? rank : 0;
  const Dims at = static_dims(index), strides = strides_of(static_dims(x));
  const Dims from = static_dims(source);
  if (from != at) { // only the part that the index covers takes part
    source = e.slices(source, Dims(at.size(), 0), at, Dims(at.size(), 1));
  }
  const i64 stride = strides[static_cast<size_t>(dim)], n = product(at);
  Dims base = positions(at, strides, dim);
  Value *flat_x = e.reshape(x, Dims{x->type().num_elements()});
  Value *flat_source = e.reshape(source, Dims{n});
  if (const std::optional<Dims> known = int_constant(index); known && !accumulate) {
    for (size_t i = 0; i < base.size(); ++i)
      base[i] += (*known)[i] * stride;
    return e.reshape(replace_rows(e, flat_x, flat_source, base), e.type().shape());
  }
  const ElementType t = index->type().element();
  Value *p = e.reshape(index, Dims{n});
  if (stride != 1)
    p = e.mul(p, e.like(p, static_cast<double>(stride)));
  p = e.add(p, e.constant_ints(t, Dims{n}, base));
  return e.reshape(update_rows(e, flat_x, p, flat_source, accumulate), e.type().shape());
}

/// index_put with one index tensor, of any rank, along any dimension.
Value *index_put(Emit &e) {
  Value *x = e.arg(0);
  const ir::Op::Segment list = e.op.segment(1);
  Value *values = e.arg(list.first + list.count);
  const bool accumulate = e.flag("accumulate");
  Value *index = nullptr;
  i64 dim = 0;
  for (u32 i = 0; i < list.count; ++i) {
    Value *v = e.op.operand(list.first + i);
    if (!v)
      continue;
    if (index)
      return e.unsupported("at positions given by several index tensors",
                           "flatten the indexed dimensions and use one");
    index = v;
    dim = i;
  }
  if (!index || !x->type().has_static_shape() || !index->type().has_static_shape() ||
      !values->type().has_static_shape())
    return e.unsupported("over a shape known only at run time", "export with static shapes");
  const ElementType t = index->type().element();
  if (t == ElementType::Bool || t == ElementType::U8) {
    if (accumulate || values->type().num_elements() != 1 || dim != 0)
      return e.unsupported("of several values through a mask",
                           "use torch.where with a value of the same shape");
    Dims shape = static_dims(index);
    shape.resize(static_cast<size_t>(x->type().rank()), 1);
    return e.select(e.reshape(e.as_bool(index), shape), e.reshape(values, Dims{}), x);
  }
  const Dims in = static_dims(x), at = static_dims(index);
  const i64 extent = in[static_cast<size_t>(dim)], n = product(at);
  // Shape of the values as torch sees them: the index's shape in place of the dimension.
  Dims wanted(in.begin(), in.begin() + dim);
  wanted.insert(wanted.end(), at.begin(), at.end());
  wanted.insert(wanted.end(), in.begin() + dim + 1, in.end());
  Dims rows = in;
  rows[static_cast<size_t>(dim)] = n;
  if (n == 1 && !accumulate && !int_constant(index)) {
    Dims line(in.size(), 1), order(static_cast<size_t>(extent));
    line[static_cast<size_t>(dim)] = extent;
    std::iota(order.begin(), order.end(), 0);
    Value *p = e.reshape(index, Dims{});
    p = e.select(e(op::LESS, {p, e.like(p, 0)}), e.add(p, e.like(p, static_cast<double>(extent))),
                 p);
    Value *here = e(op::EQUAL, {e.constant_ints(t, line, order), p});
    if (static_dims(values) == wanted)
      values = e.reshape(values, rows);
    else if (values->type().num_elements() == 1)
      values = e.reshape(values, Dims{});
    else
      values = e.reshape(e(op::BROADCAST_TO, {values, e.i32s(wanted)}), rows);
    return e.select(here, values, x);
  }
  Dims perm(in.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[static_cast<size_t>(dim)]);
  // One value may go to a position twice, which adding up would show.
  if (values->type().num_elements() == 1 && n > 0 && !accumulate && !int_constant(index)) {
    Value *p = e.reshape(index, Dims{n});
    p = e.select(e(op::LESS, {p, e.like(p, 0)}), e.add(p, e.like(p, static_cast<double>(extent))),
                 p);
    Value *hit = rows_hit(e, p, {extent});
    Dims line(in.size(), 1);
    line[static_cast<size_t>(dim)] = extent;
    return e.select(e.reshape(hit, line), e.reshape(values, Dims{}), x);
  }
  if (static_dims(values) != wanted)
    values = e(op::BROADCAST_TO, {values, e.i32s(wanted)});
  values = e.reshape(values, rows);
  x = e.transpose(x, perm);
  values = e.transpose(values, perm);
  Value *y = nullptr;
  if (std::optional<Dims> known = int_constant(index); known && !accumulate) {
    for (i64 &k : *known)
      k += k < 0 ? extent : 0;
    y = replace_rows(e, x, values, *known);
  } else {
    Value *p = e.reshape(index, Dims{n});
    p = e.select(e(op::LESS, {p, e.like(p, 0)}), e.add(p, e.like(p, static_cast<double>(extent))),
                 p);
    y = update_rows(e, x, p, values, accumulate);
  }
  return e.transpose(y, perm);
}

} // namespace

void add_scatter_rules(pass::PatternSet &set) {
  set.add("scatter", {a::scatter_src}, lower<scatter<false>>);
  set.add("scatter-add", {a::scatter_add}, lower<scatter<true>>);
  set.add("index-put", {a::index_put}, lower<index_put>);
}

} // namespace chute::circle

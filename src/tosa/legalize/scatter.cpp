// scatter.src, scatter_add and index_put by SCATTER: rows `indices` [N, W] of values [N, K, C]
// become those of input [N, W, C]. No row may be written twice.
//
// Sums (scatter_add, accumulate=True) may hit a row twice: the values are multiplied by a matrix
// that has a one where position and row meet.
#include "tosa/legalize/indexing.h"

#include <algorithm>
#include <numeric>

namespace chute::tosa {

namespace {

namespace a = aten::op;

/// Where a row of [K] is one of `index` [W], as [K, W].
Value *row_hits(Emit &e, i64 rows, Value *index) {
  Dims all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return e.equal(e.i32s(Dims{rows, 1}, all), e.reshape(index, {1, index->type().num_elements()}));
}

/// x [K, C] with rows `index` [W] replaced by `value` [1, C].
Value *fill_rows(Emit &e, Value *x, Value *index, Value *value) {
  const i64 rows = x->type().dim(0).value();
  return e.select(e.reduce(op::REDUCE_ANY, row_hits(e, rows, index), {1}), value, x);
}

/// Whether `values`, to be broadcast to `rank` dimensions, has one value along `count` of them from
/// `first` on.
bool is_uniform(const Value *values, size_t rank, i64 first, size_t count) {
  const Dims own = static_dims(values);
  for (size_t d = static_cast<size_t>(first); d < static_cast<size_t>(first) + count; ++d)
    if (rank - d <= own.size() && own[d + own.size() - rank] != 1)
      return false;
  return true;
}

/// x [K, C] with rows `index` [W] replaced by `values` [W, C], or with them added. Of constant rows
/// that are written several times the last one wins.
Value *update_rows(Emit &e, Value *x, Value *index, Value *values, bool accumulate) {
  const i64 rows = x->type().dim(0).value(), width = x->type().dim(1).value();
  const i64 n = index->type().num_elements();
  if (accumulate) {
    Value *hit = e.reshape(row_hits(e, rows, index), {1, rows, n});
    const ElementType element = x->type().element();
    const ElementType real = is_float(x) ? element : ElementType::F32;
    Value *sums = e.matmul(e.cast(hit, real), e.reshape(e.cast(values, real), {1, n, width}));
    return e.add(x, e.cast(e.reshape(sums, {rows, width}), element));
  }
  if (std::optional<Dims> known = int_constant(index)) {
    // Only the last value of each row.
    Dims last(static_cast<size_t>(rows), -1), kept_rows, kept;
    for (size_t i = 0; i < known->size(); ++i)
      last[static_cast<size_t>((*known)[i])] = static_cast<i64>(i);
    for (i64 r = 0; r < rows; ++r)
      if (last[static_cast<size_t>(r)] >= 0) {
        kept_rows.push_back(r);
        kept.push_back(last[static_cast<size_t>(r)]);
      }
    if (kept_rows.size() != known->size()) {
      const Dims at{1, static_cast<i64>(kept.size())};
      values = e.gather(e.reshape(values, {1, n, width}), e.i32s(at, kept));
      index = e.i32s(at, kept_rows);
    }
  }
  const i64 written = index->type().num_elements();
  const ElementType element = x->type().element();
  if (element == ElementType::Bool) {
    x = e.cast(x, ElementType::I8);
    values = e.cast(values, ElementType::I8);
  }
  Value *y = e(op::SCATTER, {e.reshape(x, {1, rows, width}), e.reshape(index, {1, written}),
                             e.reshape(values, {1, written, width})});
  return e.cast(e.reshape(y, {rows, width}), element);
}

template <bool accumulate>
Value *scatter(Emit &e) {
  Value *x = e.arg(0), *index = e.cast(e.arg(1), ElementType::I32), *source = e.arg(2);
  const i64 rank = x->type().rank();
  if (rank == 0)
    return accumulate ? e.add(x, source) : source;
  const i64 dim = wrapped_dim(e.integer("dim"), rank);
  const Dims at = static_dims(index), in = static_dims(x);
  for (size_t d = 0; d < at.size(); ++d) // only the part that the index covers takes part
    source = e.slice(source, static_cast<i64>(d), 0, at[d]);
  const i64 n = product(at);
  Value *position = e.reshape(flat_positions(e, index, in, dim), {n});
  Value *y = update_rows(e, e.reshape(x, {product(in), 1}), position, e.reshape(source, {n, 1}),
                         accumulate);
  return e.reshape(y, in);
}

/// index_put: the indexed dimensions go first and are one.
Value *index_put(Emit &e) {
  Value *x = e.arg(0);
  const ir::Op::Segment list = e.op.segment(1);
  Value *values = e.cast(e.arg(list.first + list.count), e.element());
  const bool accumulate = e.flag("accumulate");
  const i64 rank = x->type().rank();
  Dims indexed;
  for (u32 i = 0; i < list.count; ++i)
    if (e.op.operand(list.first + i))
      indexed.push_back(i);
  if (indexed.empty())
    return e.unsupported("without an index");
  Value *first = e.op.operand(list.first + static_cast<u32>(indexed[0]));
  if (is_bool(first) || first->type().element() == ElementType::U8) {
    if (accumulate || values->type().num_elements() != 1 || indexed.size() != 1 || indexed[0] != 0)
      return e.unsupported("of several values through a mask",
                           "use torch.where with a value of the same shape");
    Dims shape = static_dims(first);
    shape.resize(static_cast<size_t>(rank), 1);
    const Dims ones(static_cast<size_t>(rank), 1);
    return e.select(e.reshape(e.as_bool(first), shape), e.reshape(values, ones), x);
  }
  Dims perm = indexed, rest;
  for (i64 d = 0; d < rank; ++d)
    if (!std::ranges::binary_search(indexed, d)) {
      perm.push_back(d);
      rest.push_back(x->type().dim(static_cast<int>(d)).value());
    }
  // The shape that the index tensors broadcast to.
  Dims at;
  for (i64 d : indexed) {
    const Dims own = static_dims(e.op.operand(list.first + static_cast<u32>(d)));
    Dims wide(std::max(own.size(), at.size()), 1);
    for (size_t k = 0; k < wide.size(); ++k) {
      const i64 l = k < at.size() ? at[at.size() - 1 - k] : 1;
      const i64 r = k < own.size() ? own[own.size() - 1 - k] : 1;
      wide[wide.size() - 1 - k] = std::max(l, r);
    }
    at = wide;
  }
  const i64 n = product(at), width = product(rest);
  i64 rows = 1;
  Value *position = nullptr;
  for (size_t k = indexed.size(); k-- > 0;) {
    const i64 size = x->type().dim(static_cast<int>(indexed[k])).value();
    Value *v = e.op.operand(list.first + static_cast<u32>(indexed[k]));
    v = e.mul(wrapped_indices(e, v, size), static_cast<double>(rows));
    position = position ? e.add(position, v) : v;
    rows *= size;
  }
  position = e.reshape(e.broadcast(position, at), {n});
  // torch puts the indices' dimensions where the indexed ones were if those are neighbours.
  const bool neighbours = indexed.back() - indexed.front() + 1 == static_cast<i64>(indexed.size());
  const i64 front = neighbours ? indexed.front() : 0;
  Dims wanted(rest.begin(), rest.begin() + front);
  wanted.insert(wanted.end(), at.begin(), at.end());
  wanted.insert(wanted.end(), rest.begin() + front, rest.end());
  // One value for all indices may be written any number of times: a mask has no repeated rows.
  const bool uniform = n > 1 && !accumulate && !int_constant(position) &&
                       is_uniform(values, wanted.size(), front, at.size());
  if (uniform)
    std::fill_n(wanted.begin() + front, at.size(), 1);
  values = e.broadcast(values, wanted);
  if (front > 0) {
    Dims order;
    for (size_t d = 0; d < at.size(); ++d)
      order.push_back(front + static_cast<i64>(d));
    for (size_t d = 0; d < wanted.size(); ++d)
      if (static_cast<i64>(d) < front || static_cast<i64>(d) >= front + static_cast<i64>(at.size()))
        order.push_back(static_cast<i64>(d));
    values = e.transpose(values, order);
  }
  Value *moved = e.transpose(x, perm);
  const Dims shape = static_dims(moved);
  moved = e.reshape(moved, {rows, width});
  Value *y = uniform ? fill_rows(e, moved, position, e.reshape(values, {1, width}))
                     : update_rows(e, moved, position, e.reshape(values, {n, width}), accumulate);
  return e.transpose(e.reshape(y, shape), inverse(perm));
}

} // namespace

void add_scatter_rules(pass::PatternSet &set) {
  set.add("scatter", {a::scatter_src}, lower<scatter<false>>);
  set.add("scatter-add", {a::scatter_add}, lower<scatter<true>>);
  set.add("index-put", {a::index_put}, lower<index_put>);
}

} // namespace chute::tosa

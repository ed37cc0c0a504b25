// nonzero, masks as indices, repeats given as a tensor, bincount: results whose size is known at
// run time.
//
// With c the running count of chosen elements, position k (0 ≤ k < the last count) is the number of
// counts that are k at most. So, for n elements of which `chosen` are taken:
//
//   CUMSUM(mask) [n] → SLICE of 0 … n-1 by the last count → LESS_EQUAL [chosen, n] → SUM [chosen]
//
// The size comes from SLICE, whose size operand is computed: SHAPE of what follows is right at run
// time. For repeats, counts are running sums of them. The comparison takes chosen * n elements, so
// masks above kCompared, or of a size not known before, are left to WHERE, for which the runtimes
// that chute is checked with have no kernel.
#include "circle/legalize/selection.h"

#include "ir/sym_table.h"

#include <limits>
#include <numeric>

namespace chute::circle {

namespace {

namespace a = aten::op;

constexpr i64 kCompared = 4096;

/// 0 … total-1 as i32 [chosen]: a part of a constant when a bound is known, since few runtimes have
/// RANGE.
Value *count_up(Emit &e, Value *total, SymInt chosen, i64 bound) {
  const Type type = e.context().tensor_type(ElementType::I32, {chosen});
  if (bound > kCompared)
    return e.typed(op::RANGE, {e.i32(0), e.reshape(total, Dims{}), e.i32(1)}, {}, type);
  Dims iota(static_cast<size_t>(bound));
  std::iota(iota.begin(), iota.end(), 0);
  Value *all = e.constant_ints(ElementType::I32, Dims{bound}, iota);
  return e.typed(op::SLICE, {all, e.i32s({0}), total}, {}, type);
}

/// Where counts (i32 [n], ascending) exceed k first, for every k below the last of them.
Value *positions_in(Emit &e, Value *counts, SymInt chosen, i64 bound) {
  ir::Context &ctx = e.context();
  const SymInt n = counts->type().dim(0);
  Value *total = e.slice(counts, 0, n.value() - 1, n.value());
  Value *k = count_up(e, total, chosen, bound);
  k = e.typed(op::RESHAPE, {k, e.i32s({-1, 1})}, {},
              ctx.tensor_type(ElementType::I32, {chosen, SymInt(1)}));
  Value *row = e.reshape(counts, SymDims{1, n});
  Value *passed = e.cast(e(op::LESS_EQUAL, {row, k}), ElementType::I32);
  return e.reduce(op::SUM, passed, {1}, false);
}

Value *running_sum(Emit &e, Value *v) {
  return v->type().dim(0) == SymInt(1) ? v : e(op::CUMSUM, {v, e.i32(0)});
}

/// The number of elements when it is small enough to be compared with all positions.
std::optional<i64> compared(Emit &e, const Value *v) {
  const SymInt n = e.context().sym().product(v->type().shape());
  if (n.is_symbolic() || n.value() == 0 || n.value() > kCompared)
    return {};
  return n.value();
}

/// [chosen, rank of the mask] of i64
Value *where_true(Emit &e, Value *mask, SymInt chosen) {
  return e.typed(op::WHERE, {e.as_bool(mask)}, {},
                 e.context().tensor_type(ElementType::I64, {chosen, SymInt(mask->type().rank())}));
}

Value *nonzero(Emit &e) {
  Value *x = e.arg(0);
  const SymInt chosen = e.type().dim(0);
  const int rank = x->type().rank();
  if (rank == 0)
    return e.unsupported("of a single number", "compare the number with zero instead");
  const std::optional<i64> n = compared(e, x);
  if (!n)
    return where_true(e, x, chosen);
  Value *at = chosen_positions(e, x, chosen);
  if (rank == 1)
    return e.typed(op::RESHAPE, {e.cast(at, ElementType::I64), e.i32s({-1, 1})}, {}, e.type());
  // Coordinates by table: integer division and remainder are not in every runtime.
  const Dims shape = static_dims(x), strides = strides_of(shape);
  Dims table;
  for (i64 i = 0; i < *n; ++i)
    for (size_t d = 0; d < shape.size(); ++d)
      table.push_back(i / strides[d] % shape[d]);
  return e(op::GATHER, {e.constant_ints(ElementType::I64, Dims{*n, rank}, table), at},
           {{"axis", of(i64{0})}});
}

/// Row k of the result is row i of the operand where the running sum of repeats exceeds k first.
Value *repeats(Emit &e) {
  Value *r = e.arg(0);
  const SymInt rows = e.type().dim(0);
  if (!compared(e, r))
    return e.unsupported("by a number of repeats that is not known or large",
                         "export with static shapes");
  const i64 bound = rows.is_static() ? rows.value() : e.context().sym().range(rows).max;
  Value *counts = running_sum(e, e.cast(r, ElementType::I32));
  return e.cast(positions_in(e, counts, rows, bound), e.type().element());
}

/// Numbers are compared with 0 … the largest of them, as many rows as that says at run time.
Value *bincount(Emit &e) {
  Value *x = e.arg(0), *weights = e.arg(1);
  const SymInt n = x->type().dim(0), bins = e.type().dim(0);
  if (n == SymInt(0) || !e.is_static("minlength"))
    return e.unsupported("of nothing, or with a number of bins that is not known");
  const i64 least = e.integer("minlength");
  Value *at = e.cast(x, ElementType::I32);
  Value *total = e.add(e.reduce(op::REDUCE_MAX, at, {0}, true), e.i32s({1}));
  if (least > 0)
    total = e(op::MAXIMUM, {total, e.i32s({least})});
  Value *k = count_up(e, total, bins, std::numeric_limits<i64>::max());
  k = e.typed(op::RESHAPE, {k, e.i32s({-1, 1})}, {},
              e.context().tensor_type(ElementType::I32, {bins, SymInt(1)}));
  Value *row = e.reshape(at, SymDims{SymInt(1), n});
  const ElementType summed = weights ? e.type().element() : ElementType::I32;
  Value *hits = e.cast(e(op::EQUAL, {row, k}), summed);
  if (weights)
    hits = e.mul(hits, e.reshape(e.cast(weights, summed), SymDims{SymInt(1), n}));
  return e.cast(e.reduce(op::SUM, hits, {1}, false), e.type().element());
}

} // namespace

Value *chosen_positions(Emit &e, Value *mask, SymInt chosen) {
  const std::optional<i64> n = compared(e, mask);
  if (n) {
    Value *flat = e.reshape(e.cast(e.as_bool(mask), ElementType::I32), Dims{*n});
    Value *counts = running_sum(e, flat);
    return positions_in(e, counts, chosen, *n);
  }
  mask = e.reshape(mask, SymDims{e.context().sym().product(mask->type().shape())});
  if (!mask)
    return nullptr;
  return e.typed(op::RESHAPE, {where_true(e, mask, chosen), e.i32s({-1})}, {},
                 e.context().tensor_type(ElementType::I64, {chosen}));
}

void add_selection_rules(pass::PatternSet &set) {
  set.add("nonzero", {a::nonzero}, lower<nonzero>);
  set.add("bincount", {a::bincount}, lower<bincount>);
  set.add("repeats", {a::repeat_interleave_Tensor}, lower<repeats>);
}

} // namespace chute::circle

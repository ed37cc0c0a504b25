// Reductions, scans, arg-reductions and sorts. TOSA reduces one axis at a time and keeps it.
#include "tosa/legalize/emit.h"

#include <numeric>

namespace chute::tosa {

namespace {

namespace a = aten::op;

constexpr size_t kAxesWorthMerging = 3;
constexpr i64 kLongestTriangle = 128; ///< a sum scan is a product with a triangle up to here
constexpr i64 kLongestRanking = 256;  ///< a sort compares every pair up to here

/// The `dim` attribute as a sorted list of axes; empty or None means all.
Dims axes_of(Emit &e) {
  Dims axes = e.ints("dim");
  const i64 rank = e.arg(0)->type().rank();
  for (i64 &d : axes)
    d = wrapped_dim(d, rank);
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::ranges::sort(axes);
  return axes;
}

/// Adjacent axes that end up removed are one axis of the product of their sizes.
Value *reduce(Emit &e, OpCode code, Value *x) {
  Dims axes = axes_of(e);
  const Dims dims = static_dims(x);
  std::erase_if(axes, [&](i64 a) { return dims[static_cast<size_t>(a)] == 1; });
  const bool adjacent =
      !axes.empty() && axes.back() - axes.front() + 1 == static_cast<i64>(axes.size());
  if (axes.size() >= kAxesWorthMerging && adjacent && !e.flag("keepdim")) {
    Dims merged(dims.begin(), dims.begin() + axes.front());
    merged.push_back(
        product(std::span(dims).subspan(static_cast<size_t>(axes.front()), axes.size())));
    merged.insert(merged.end(), dims.begin() + axes.back() + 1, dims.end());
    x = e.reshape(x, merged);
    axes = {axes.front()};
  }
  return e.reshape(e.reduce(code, x, axes), static_dims(e.type()));
}

template <OpCode code>
Value *arithmetic(Emit &e) {
  Value *x = e.widened(e.cast(e.arg(0), e.element()));
  if (code == op::REDUCE_PRODUCT && !is_float(x))
    return e.unsupported("of integers: TOSA multiplies only floats up along an axis",
                         "compute it in float");
  return e.cast(reduce(e, code, x), e.element());
}

Value *mean(Emit &e) {
  Value *x = e.cast(e.arg(0), e.element());
  double count = 1;
  for (i64 d : axes_of(e))
    count *= static_cast<double>(x->type().dim(static_cast<int>(d)).value());
  return e.mul(reduce(e, op::REDUCE_SUM, x), 1 / count);
}

template <OpCode code, OpCode on_bool>
Value *extreme(Emit &e) {
  return reduce(e, is_bool(e.arg(0)) ? on_bool : code, e.arg(0));
}

template <OpCode code>
Value *truth(Emit &e) {
  return e.cast(reduce(e, code, e.as_bool(e.arg(0))), e.element());
}

template <bool smallest>
Value *arg_extreme(Emit &e) {
  Value *x = e.arg(0);
  if (is_bool(x) || x->type().element() == ElementType::I32)
    x = e.cast(e.widened(x), ElementType::F32);
  const bool flat = e.attr("dim").is_none();
  if (flat)
    x = e.reshape(x, {x->type().num_elements()});
  if (x->type().rank() == 0)
    return e.number_of(e.element(), 0, 0);
  const i64 dim = flat ? 0 : wrapped_dim(e.integer("dim"), x->type().rank());
  if (smallest)
    x = e.neg(x);
  Value *r = e(op::ARGMAX, {x}, {{"axis", of(dim)}});
  return e.cast(e.reshape(r, static_dims(e.type())), e.element());
}

/// Hillis and Steele: log2(n) rounds of y = f(y, shift(y)), where the shift brings in `neutral`.
Value *scan_by_doubling(Emit &e, Value *y, i64 dim, double neutral) {
  const i64 n = y->type().dim(static_cast<int>(dim)).value();
  for (i64 step = 1; step < n; step *= 2) {
    Dims pads(static_cast<size_t>(y->type().rank()) * 2, 0);
    pads[static_cast<size_t>(dim) * 2] = step;
    Value *shifted = e.pad(e.slice(y, dim, 0, n - step), pads, neutral);
    y = neutral == 0 ? e.add(y, shifted) : e.mul(y, shifted);
  }
  return y;
}

/// Short float sums are a product with a triangle of ones.
Value *cumsum(Emit &e) {
  Value *x = e.widened(e.cast(e.arg(0), e.element()));
  const i64 rank = x->type().rank();
  if (rank == 0)
    return x;
  const i64 dim = wrapped_dim(e.integer("dim"), rank);
  const Dims dims = static_dims(x);
  const i64 n = dims[static_cast<size_t>(dim)];
  if (!is_float(x) || n > kLongestTriangle)
    return e.cast(scan_by_doubling(e, x, dim, 0), e.element());
  const i64 before = product(std::span(dims).first(static_cast<size_t>(dim)));
  const i64 after = product(std::span(dims).subspan(static_cast<size_t>(dim) + 1));
  std::vector<double> ones;
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < n; ++j)
      ones.push_back(after == 1 ? (i <= j) : (j <= i));
  if (after == 1) {
    Value *triangle = e.constant(e.element(), Dims{1, n, n}, ones);
    return e.reshape(e.matmul(e.reshape(x, {1, before, n}), triangle), dims);
  }
  Value *triangle = e.broadcast(e.constant(e.element(), Dims{1, n, n}, ones), {before, n, n});
  return e.reshape(e.matmul(triangle, e.reshape(x, {before, n, after})), dims);
}

Value *cumprod(Emit &e) {
  Value *x = e.widened(e.cast(e.arg(0), e.element()));
  if (x->type().rank() == 0)
    return x;
  const i64 dim = wrapped_dim(e.integer("dim"), x->type().rank());
  return e.cast(scan_by_doubling(e, x, dim, 1), e.element());
}

/// The place of each element in the order: how many others come before it. Equal elements keep
/// their order. Then value k is the one whose place is k.
std::vector<Value *> by_ranking(Emit &e, Value *x, i64 k, i64 dim, bool largest) {
  const Dims dims = static_dims(x);
  const i64 n = dims[static_cast<size_t>(dim)];
  if (n > kLongestRanking) {
    e.unsupported("of more than " + std::to_string(kLongestRanking) + " elements",
                  "sort fewer elements, or outside of the model");
    return {};
  }
  // [A, n] with the sorted dimension last.
  Dims perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(dim)], perm.back());
  Value *moved = e.transpose(x, perm);
  const Dims wide = static_dims(moved);
  const i64 rows = product(wide) / n;
  Value *mine = e.reshape(moved, {rows, n, 1}), *other = e.reshape(moved, {rows, 1, n});
  std::vector<double> earlier;
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < n; ++j)
      earlier.push_back(j < i);
  Value *before = largest ? e.greater(other, mine) : e.greater(mine, other);
  Value *tie = e.binary(op::LOGICAL_AND, e.equal(other, mine),
                        e.constant(ElementType::Bool, Dims{1, n, n}, earlier));
  before = e.cast(e.binary(op::LOGICAL_OR, before, tie), ElementType::I32);
  Value *place = e.reshape(e.reduce(op::REDUCE_SUM, before, {2}), {rows, 1, n});
  std::vector<double> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  Value *hit = e.equal(place, e.constant(ElementType::I32, Dims{1, k, 1}, order));
  Value *index =
      e.reshape(e(op::ARGMAX, {e.cast(hit, ElementType::F32)}, {{"axis", of(i64{2})}}), {rows, k});
  Value *values = e.gather(e.reshape(moved, {rows, n, 1}), index);
  Dims result = wide;
  result.back() = k;
  return {e.cast(e.transpose(e.reshape(values, result), perm), e.type(0).element()),
          e.transpose(e.cast(e.reshape(index, result), e.type(1).element()), perm)};
}

std::vector<Value *> top(Emit &e, i64 k, i64 dim, bool largest) {
  Value *x = e.arg(0);
  if (x->type().rank() == 0)
    return {x, e.number_of(e.type(1).element(), 0, 0)};
  if (k != 1)
    return by_ranking(e, e.widened(x), k, dim, largest);
  if (x->type().element() == ElementType::Bool)
    x = e.widened(x);
  Value *value =
      e.cast(e.reduce(largest ? op::REDUCE_MAX : op::REDUCE_MIN, x, {dim}), e.type(0).element());
  Value *index = nullptr;
  if (e.op.result(1)->has_uses()) {
    Value *f = is_float(x) ? x : e.cast(e.widened(x), ElementType::F32);
    index = e(op::ARGMAX, {largest ? f : e.neg(f)}, {{"axis", of(dim)}});
    index = e.cast(e.reshape(index, static_dims(e.type(1))), e.type(1).element());
  }
  return {value, index};
}

std::vector<Value *> topk(Emit &e) {
  return top(e, e.integer("k"), wrapped_dim(e.integer("dim"), e.arg(0)->type().rank()),
             e.flag("largest"));
}

std::vector<Value *> sort(Emit &e) {
  Value *x = e.arg(0);
  const i64 rank = x->type().rank(), dim = wrapped_dim(e.integer("dim"), rank);
  const i64 n = rank ? x->type().dim(static_cast<int>(dim)).value() : 1;
  return top(e, n, dim, e.flag("descending"));
}

} // namespace

void add_reduction_rules(pass::PatternSet &set) {
  set.add("sum", {a::sum_dim_IntList}, lower<arithmetic<op::REDUCE_SUM>>);
  set.add("mean", {a::mean_dim}, lower<mean>);
  set.add("prod", {a::prod_dim_int}, lower<arithmetic<op::REDUCE_PRODUCT>>);
  set.add("amax", {a::amax}, lower<extreme<op::REDUCE_MAX, op::REDUCE_ANY>>);
  set.add("amin", {a::amin}, lower<extreme<op::REDUCE_MIN, op::REDUCE_ALL>>);
  set.add("any", {a::any_dims}, lower<truth<op::REDUCE_ANY>>);
  set.add("all", {a::all_dims}, lower<truth<op::REDUCE_ALL>>);
  set.add("argmax", {a::argmax}, lower<arg_extreme<false>>);
  set.add("argmin", {a::argmin}, lower<arg_extreme<true>>);
  set.add("cumsum", {a::cumsum}, lower<cumsum>);
  set.add("cumprod", {a::cumprod}, lower<cumprod>);
  set.add("topk", {a::topk}, lower_many<topk>);
  set.add("sort", {a::sort, a::sort_stable}, lower_many<sort>);
}

} // namespace chute::tosa

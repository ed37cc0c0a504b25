// merge-transposes: transposes that cancel, join or only rename positions.
//
//   transpose by the identity                      → x
//   transpose(transpose(x, p), q)                  → transpose(x, p·q), or x
//   transpose(constant)                            → a permuted view of the constant
//   transpose(reshape(transpose(x))) where the reshape only adds or drops dimensions of size 1
//                                                  → one transpose and one reshape, or less
//   reshape(transpose(reshape(x))) where the inner reshape only adds or drops dimensions of size 1
//                                                  → reshape(transpose(x))
//   transpose that moves only dimensions of size 1 → reshape
//
// Exact. Other users of an inner transpose keep it. Left alone: run-time permutations, values that
// are quantized differently on both sides, per-channel quantization of anything but constants.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

bool is_permutation(const Dims &perm, int rank) {
  if (perm.size() != static_cast<size_t>(rank))
    return false;
  u64 seen = 0;
  for (i64 p : perm)
    if (p < 0 || p >= rank || p >= 64 || (seen >> p & 1))
      return false;
    else
      seen |= u64{1} << p;
  return true;
}

Transposed valid(const Value *v) {
  const Op *p = made_by(v, op::TRANSPOSE);
  if (!p || !small_ints(p->operand(1)))
    return {};
  Transposed t = transposed(v);
  if (!t || !is_permutation(t.perm, v->type().rank()) ||
      t.source->type().rank() != v->type().rank() || !stored_alike(t.source->type(), v->type()))
    return {};
  return t;
}

bool merge(Op &op, Rewriter &rw) {
  const Transposed outer = valid(op.result());
  if (!outer)
    return false;
  if (is_identity(outer.perm)) {
    if (outer.source->type() != op.result()->type())
      return false;
    rw.replace(op, outer.source);
    return true;
  }
  if (const ir::Constant *c = data_of(outer.source)) {
    Value *v = rw.before(op).constant(permuted(rw.graph(), *c, outer.perm));
    rw.replace(op, v);
    return true;
  }
  const Transposed inner = valid(outer.source);
  if (!inner)
    return false;
  Dims both;
  for (i64 p : outer.perm)
    both.push_back(inner.perm[static_cast<size_t>(p)]);
  if (is_identity(both) && inner.source->type() != op.result()->type())
    return false;
  rw.replace(op, is_identity(both) ? inner.source : make_transpose(rw, op, inner.source, both));
  return true;
}

/// Exact positions of the dimensions other than 1; nullopt when one is known at run time only.
std::optional<Dims> wide_dims(Type t) {
  Dims out;
  for (int i = 0; i < t.rank(); ++i) {
    if (t.dim(i).is_symbolic())
      return {};
    if (t.dim(i) != SymInt(1))
      out.push_back(i);
  }
  return out;
}

/// Whether the reshape from `a` to `b` only adds and drops dimensions of size 1, whose others lie
/// at `wide_a` and `wide_b`.
bool only_ones_differ(Type a, const Dims &wide_a, Type b, const Dims &wide_b) {
  return std::ranges::equal(
      wide_a, wide_b, {}, [&](i64 i) { return a.dim(static_cast<int>(i)); },
      [&](i64 i) { return b.dim(static_cast<int>(i)); });
}

/// transpose(reshape(transpose(x))) by the order in which the dimensions other than 1 arrive.
bool merge_around_view(Op &op, Rewriter &rw) {
  const Transposed outer = valid(op.result());
  const Op *view = outer ? made_for_one(outer.source, op::RESHAPE) : nullptr;
  if (!view)
    return false;
  const Value *middle = view->operand(0);
  if (!stored_alike(middle->type(), op.result()->type()))
    return false;
  const Transposed inner = valid(middle);
  if (!inner || !middle->has_one_use())
    return false;
  const std::optional<Dims> a = wide_dims(middle->type()), b = wide_dims(outer.source->type());
  if (!a || !b || !only_ones_differ(middle->type(), *a, outer.source->type(), *b))
    return false;
  // Where in x each wide dimension of the result comes from.
  Dims from;
  for (i64 p : outer.perm)
    for (size_t i = 0; i < b->size(); ++i)
      if ((*b)[i] == p)
        from.push_back(inner.perm[static_cast<size_t>((*a)[i])]);
  if (!std::is_sorted(from.begin(), from.end())) {
    rw.reject("the dimensions other than 1 end in another order");
    return false;
  }
  return replace_by_view(op, rw, inner.source);
}

/// reshape(transpose(reshape(x))): the transpose takes x as it is, with the wide dimensions in the
/// same order and those of size 1 behind them.
bool transpose_before_view(Op &op, Rewriter &rw) {
  const Op *transpose = made_for_one(op.operand(0), op::TRANSPOSE);
  const Transposed t = transpose ? valid(op.operand(0)) : Transposed();
  const Op *view = t ? made_for_one(t.source, op::RESHAPE) : nullptr;
  if (!view)
    return false;
  Value *x = view->operand(0);
  const std::optional<Dims> a = wide_dims(x->type()), b = wide_dims(t.source->type());
  if (!a || !b || !stored_alike(x->type(), op.result()->type()) ||
      !only_ones_differ(x->type(), *a, t.source->type(), *b))
    return false;
  Dims perm;
  for (i64 p : t.perm)
    if (const auto at = std::ranges::find(*b, p); at != b->end())
      perm.push_back((*a)[static_cast<size_t>(at - b->begin())]);
  for (i64 d = 0; d < x->type().rank(); ++d)
    if (!std::ranges::binary_search(*a, d))
      perm.push_back(d);
  return replace_by_view(op, rw, is_identity(perm) ? x : make_transpose(rw, op, x, perm));
}

} // namespace

void add_transpose_rules(pass::PatternSet &set) {
  set.add("merge-transposes", {op::TRANSPOSE}, merge);
  set.add("transposes-around-view", {op::TRANSPOSE}, merge_around_view);
}

void add_transposed_view_rules(pass::PatternSet &set) {
  set.add("transpose-before-view", {op::RESHAPE}, transpose_before_view);
}

void merge_transposes(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_transpose_rules(s);
    add_transposed_view_rules(s);
    add_layout_region_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

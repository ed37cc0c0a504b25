// simplify-reductions: reductions that join each other or swallow a transpose.
//
//   mean(mean(x, a), b)              → mean(x, a and b); sum, max, min, prod, any, all likewise
//   reduce(transpose(x), axes) whose remaining dimensions keep x's order → reduce(x, axes of x)
//   reshape(reduce(x)) that only drops or adds the dimensions that were reduced
//                                    → reduce(x) that does not keep, or keeps, them
//
// Exact for max, min, any, all, and for integers; means and sums of floats are added in another
// order: bound 2 log2(n) ulp of the sum of magnitudes over the n elements, as for any order. Left
// alone: quantized values (each reduction rounds; the last rule is for them too), an inner result
// with other users, run-time axes.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

constexpr std::initializer_list<OpCode> kReductions{op::MEAN,       op::SUM,        op::REDUCE_PROD,
                                                    op::REDUCE_MAX, op::REDUCE_MIN, op::REDUCE_ANY,
                                                    op::REDUCE_ALL};

bool keeps(const Op &op) { return op.attr("keep_dims").as_bool(); }

/// Normalized, sorted axes; nullopt when they are no constants or do not fit.
std::optional<Dims> axes_of(const Op &op) {
  std::optional<Dims> axes = small_ints(op.operand(1));
  const int rank = op.operand(0)->type().rank();
  if (!axes)
    return {};
  for (i64 &a : *axes) {
    a += a < 0 ? rank : 0;
    if (a < 0 || a >= rank)
      return {};
  }
  std::ranges::sort(*axes);
  axes->erase(std::unique(axes->begin(), axes->end()), axes->end());
  return axes;
}

/// From the end, as legalization counts: onert drops leading dimensions of FULLY_CONNECTED.
Value *axes_constant(Op &op, Rewriter &rw, const Dims &axes, int rank) {
  std::vector<i32> v;
  for (i64 a : axes)
    v.push_back(static_cast<i32>(a - rank));
  return rw.before(op).constant_i32(v);
}

bool merge_reductions(Op &op, Rewriter &rw) {
  const Op *inner = made_by(op.operand(0), op.opcode());
  if (!inner || op.result()->type().quant() || op.operand(0)->type().quant() ||
      inner->operand(0)->type().quant() || keeps(*inner) != keeps(op))
    return false;
  if (!op.operand(0)->has_one_use()) {
    rw.reject("the inner result has other users");
    return false;
  }
  const std::optional<Dims> a = axes_of(*inner), b = axes_of(op);
  if (!a || !b)
    return false;
  Dims all = *a;
  if (keeps(op)) {
    all.insert(all.end(), b->begin(), b->end());
  } else {
    Dims left;
    for (i64 d = 0; d < inner->operand(0)->type().rank(); ++d)
      if (!std::ranges::binary_search(*a, d))
        left.push_back(d);
    for (i64 d : *b)
      all.push_back(left[static_cast<size_t>(d)]);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Value *x = inner->operand(0);
  rw.replace(op, make(rw, op, op.opcode(), {x, axes_constant(op, rw, all, x->type().rank())},
                      {{"keep_dims", op.attr("keep_dims")}}));
  return true;
}

bool reduce_transposed(Op &op, Rewriter &rw) {
  if (!made_by(op.operand(0), op::TRANSPOSE) || keeps(op) || !is_movable(op.operand(0)->type()))
    return false;
  const Transposed t = transposed(op.operand(0));
  const std::optional<Dims> axes = axes_of(op);
  if (!t || !axes || !stored_alike(t.source->type(), op.operand(0)->type()) ||
      t.perm.size() != static_cast<size_t>(t.source->type().rank()))
    return false;
  Dims gone, left;
  for (size_t d = 0; d < t.perm.size(); ++d)
    (std::ranges::binary_search(*axes, static_cast<i64>(d)) ? gone : left).push_back(t.perm[d]);
  if (!std::ranges::is_sorted(left)) {
    rw.reject("what is left is in another order");
    return false;
  }
  std::ranges::sort(gone);
  rw.replace(op, make(rw, op, op.opcode(),
                      {t.source, axes_constant(op, rw, gone, t.source->type().rank())},
                      {{"keep_dims", op.attr("keep_dims")}}));
  return true;
}

bool reduce_to_view(Op &op, Rewriter &rw) {
  const Value *middle = op.operand(0);
  Op *reduce = middle->producer();
  if (!reduce || !std::ranges::count(kReductions, reduce->opcode()) || !middle->has_one_use() ||
      !stored_alike(middle->type(), op.result()->type()))
    return false;
  const std::optional<Dims> axes = axes_of(*reduce);
  if (!axes)
    return false;
  const std::span<const SymInt> x = reduce->operand(0)->type().shape();
  SymDims kept;
  for (size_t d = 0; d < x.size(); ++d)
    if (!std::ranges::binary_search(*axes, static_cast<i64>(d)))
      kept.push_back(x[d]);
    else if (!keeps(*reduce))
      kept.push_back(1);
  if (!std::ranges::equal(kept, op.result()->type().shape()))
    return false;
  Value *operands[] = {reduce->operand(0), reduce->operand(1)};
  const Type type = op.result()->type();
  Op *made = recreate(rw, *reduce, operands, std::span(&type, 1));
  rw.graph().set_attr(made, static_cast<u32>(made->def().attr_index("keep_dims")),
                      ir::Attr::of_bool(!keeps(*reduce)));
  rw.replace(op, made->result());
  return true;
}

} // namespace

void add_reduce_rules(pass::PatternSet &set) {
  set.add("merge-reductions", kReductions, merge_reductions);
  set.add("reduce-transposed", kReductions, reduce_transposed);
  set.add("reduce-to-view", {op::RESHAPE}, reduce_to_view);
}

void simplify_reductions(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_reduce_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

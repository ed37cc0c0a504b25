// simplify-arithmetic: constant factors meet, roots and signs join their neighbours.
//
//   mul(mul(x, a), b)   → mul(x, a*b)      div(mul(x, a), b) → mul(x, a/b)
//   div(div(x, a), b)   → div(x, a*b)      mul(div(x, a), b) → mul(x, b/a)
//   div(c, mul(x, a))   → div(c/a, x)
//   add(add(x, a), b)   → add(x, a+b)      integers only: exact modulo 2^n
//   div(x, sqrt(y))     → mul(x, rsqrt(y)) when nothing else uses the root; c = 1 → rsqrt(y)
//   add(x, neg(y))      → sub(x, y)        sub(x, neg(y)) → add(x, y)     (exact)
//
// a, b, c: f32 scalars. The new constant is computed in double and rounded once. Bound: each rule
// moves a result by at most 2 ulp (relative 2.4e-7) of the exact one, as the original did; a
// constant that overflows, or vanishes, or is subnormal, is rejected. Left alone: quantized values,
// an inner activation, an inner operator with other users, constants that widen x.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <cmath>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

/// op(x, a) with a scalar constant: what it multiplies x by, as numerator and denominator.
struct Scaled {
  Value *x = nullptr;
  double factor = 1;
  bool divides = false; ///< written as x / a
};

Scaled scaled(const Op *p) {
  if (!p || (p->opcode() != op::MUL && p->opcode() != op::DIV) || !is_f32(p->result()))
    return {};
  for (u32 i = 0; i < 2; ++i) {
    if (i == 0 && p->opcode() == op::DIV)
      continue;
    const std::optional<double> a = real_splat(p->operand(i));
    Value *x = p->operand(1 - i);
    if (a && is_f32(p->operand(i)) && is_f32(x) && same_shape(x->type(), p->result()->type()) &&
        !constant_of(x))
      return {x, *a, p->opcode() == op::DIV};
  }
  return {};
}

/// Whether the f32 nearest to `v` keeps 24 significant bits.
bool is_normal(double v) {
  const auto f = static_cast<float>(v);
  return std::isnormal(f);
}

bool merge_scales(Op &op, Rewriter &rw) {
  const Scaled outer = scaled(&op);
  const Op *p = outer.x ? outer.x->producer() : nullptr;
  const Scaled inner = scaled(p);
  if (!inner.x)
    return false;
  if (!outer.x->has_one_use()) {
    rw.reject("the product between has other users");
    return false;
  }
  if (has_activation(*p)) {
    rw.reject("an activation between");
    return false;
  }
  // Two divisions stay one; anything else is a product.
  const bool divide = inner.divides && outer.divides;
  double factor = inner.factor * outer.factor;
  if (!divide) {
    const double a = inner.divides ? 1.0 / inner.factor : inner.factor;
    const double b = outer.divides ? 1.0 / outer.factor : outer.factor;
    factor = outer.divides ? (inner.divides ? a * b : inner.factor / outer.factor)
                           : (inner.divides ? outer.factor / inner.factor : a * b);
  }
  // Both orders of rounding stay in range: neither product may leave it where the other did not.
  if (!is_normal(factor) || !is_normal(inner.factor) || !is_normal(outer.factor)) {
    rw.reject("the factor would overflow or lose digits");
    return false;
  }
  Value *c = rw.before(op).scalar(ElementType::F32, factor);
  rw.replace(op, make(rw, op, divide ? op::DIV : op::MUL, {inner.x, c},
                      {{"fused_activation_function", op.attr("fused_activation_function")}}));
  return true;
}

bool constant_over_scale(Op &op, Rewriter &rw) {
  const std::optional<double> c = real_splat(op.operand(0));
  const Op *p = made_for_one(op.operand(1), op::MUL);
  const Scaled inner = scaled(p);
  if (!c || !inner.x || !is_f32(op.operand(0)) || !is_f32(op.result()) || has_activation(*p) ||
      !same_shape(inner.x->type(), op.result()->type()))
    return false;
  const double factor = *c / inner.factor;
  if (!is_normal(factor) || !is_normal(inner.factor)) {
    rw.reject("the factor would overflow or lose digits");
    return false;
  }
  Value *k = rw.before(op).scalar(ElementType::F32, factor);
  rw.replace(op, make(rw, op, op::DIV, {k, inner.x},
                      {{"fused_activation_function", op.attr("fused_activation_function")}}));
  return true;
}

bool merge_integer_sums(Op &op, Rewriter &rw) {
  const Type t = op.result()->type();
  if ((t.element() != ElementType::I32 && t.element() != ElementType::I64) || t.quant() ||
      has_activation(op))
    return false;
  for (u32 i = 0; i < 2; ++i) {
    const std::optional<Dims> b = small_ints(op.operand(i), 1);
    const Op *p = made_for_one(op.operand(1 - i), op::ADD);
    if (!b || b->size() != 1 || !p || has_activation(*p))
      continue;
    for (u32 k = 0; k < 2; ++k) {
      const std::optional<Dims> a = small_ints(p->operand(k), 1);
      Value *x = p->operand(1 - k);
      if (!a || a->size() != 1 || x->type() != t || constant_of(x))
        continue;
      const u64 sum = static_cast<u64>((*a)[0]) + static_cast<u64>((*b)[0]);
      ir::Builder build = rw.before(op);
      const i64 wide[] = {static_cast<i64>(sum)};
      const i32 narrow[] = {static_cast<i32>(static_cast<u32>(sum))};
      Value *c = t.element() == ElementType::I64 ? build.constant_i64(wide, true)
                                                 : build.constant_i32(narrow, true);
      rw.replace(op, make(rw, op, op::ADD, {x, c}));
      return true;
    }
  }
  return false;
}

bool divide_by_root(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  const Op *root = made_by(op.operand(1), op::SQRT);
  if (!root || !is_f32(x) || !is_f32(op.operand(1)) || !is_f32(op.result()))
    return false;
  if (!op.operand(1)->has_one_use()) {
    rw.reject("the root has other users");
    return false;
  }
  Value *y = root->operand(0);
  if (!is_f32(y) || !same_shape(y->type(), op.operand(1)->type()))
    return false;
  const bool one = real_splat(x) == 1.0;
  if (constant_of(x) && !one) {
    rw.reject("a constant over a root");
    return false;
  }
  const Type type = op.operand(1)->type();
  Value *r =
      rw.before(op).create_typed(op::RSQRT, std::span(&y, 1), {}, std::span(&type, 1))->result();
  if (one && !has_activation(op) && type == op.result()->type())
    rw.replace(op, r);
  else
    rw.replace(op, make(rw, op, op::MUL, {x, r},
                        {{"fused_activation_function", op.attr("fused_activation_function")}}));
  return true;
}

bool absorb_negation(Op &op, Rewriter &rw) {
  const Type t = op.result()->type();
  if (t.quant() || op.num_operands() != 2)
    return false;
  const bool sum = op.opcode() == op::ADD;
  for (u32 i = 1;; --i) {
    const Op *neg = made_for_one(op.operand(i), op::NEG);
    if (neg && neg->operand(0)->type() == op.operand(i)->type()) {
      rw.replace(op, make(rw, op, sum ? op::SUB : op::ADD, {op.operand(1 - i), neg->operand(0)},
                          {{"fused_activation_function", op.attr("fused_activation_function")},
                           {"pot_scale_int16", op.attr("pot_scale_int16")}}));
      return true;
    }
    if (i == 0 || !sum)
      return false;
  }
}

} // namespace

void add_arithmetic_rules(pass::PatternSet &set) {
  set.add("merge-scales", {op::MUL, op::DIV}, merge_scales);
  set.add("constant-over-scale", {op::DIV}, constant_over_scale);
  set.add("merge-integer-sums", {op::ADD}, merge_integer_sums);
  set.add("divide-by-root", {op::DIV}, divide_by_root);
  set.add("absorb-negation", {op::ADD, op::SUB}, absorb_negation);
}

void simplify_arithmetic(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_arithmetic_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

// sigmoids: the logistic function and what is built from it, from arithmetic.
//
//   1 / (1 + exp(-x))                   → logistic(x)
//   x / (1 + exp(-x))                   → x * logistic(x)        (SiLU; the format has no operator)
//   x * relu6(x + 3) / 6                → hard_swish(x)          only as pass fuse-hard-swish
//
// The last is part of no level: TFLite runs HARD_SWISH, tico's interpreter and onert 0.1.0 do not.
// 1/6 may be a factor anywhere in the product, relu6 an activation of the ADD.
//
// f32 only. Bound: the operator computes the same function with fewer roundings; results differ by
// at most 8 ulp. Where exp(-x) overflows, both forms give 0. Left alone: inner values that
// something else uses, constants that are not the function's, fused activations elsewhere.
#include "circle/passes.h"
#include "circle/passes/rules/product.h"
#include "circle/passes/rules/rules.h"

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

/// x with `v` = 1 + exp(-x); null when it is not.
Value *shifted_exponential(const Value *v) {
  const Op *add = made_for_one(v, op::ADD);
  if (!add || has_activation(*add) || !is_f32(v))
    return nullptr;
  for (u32 i = 0; i < 2; ++i) {
    const Op *exp = made_for_one(add->operand(i), op::EXP);
    const Op *neg = exp ? made_for_one(exp->operand(0), op::NEG) : nullptr;
    if (neg && real_splat(add->operand(1 - i)) == 1.0)
      return neg->operand(0);
  }
  return nullptr;
}

bool logistic(Op &op, Rewriter &rw) {
  Value *x = shifted_exponential(op.operand(1));
  if (!x || has_activation(op) || x->type() != op.result()->type())
    return false;
  if (op.operand(0) != x && real_splat(op.operand(0)) != 1.0)
    return false;
  const bool silu = op.operand(0) == x;
  Value *s = make(rw, op, op::LOGISTIC, {x});
  rw.replace(op, silu ? make(rw, op, op::MUL, {x, s}) : s);
  return true;
}

/// Whether `v` = relu6(x + 3).
bool is_gate_of(const Value *v, const Value *x) {
  const Op *p = v->has_one_use() ? v->producer() : nullptr;
  if (!p)
    return false;
  const bool fused = p->opcode() == op::ADD;
  const Op *add = fused                      ? p
                  : p->opcode() == op::RELU6 ? made_for_one(p->operand(0), op::ADD)
                                             : nullptr;
  if (!add || add->attr("fused_activation_function").as_string() != (fused ? "RELU6" : "NONE"))
    return false;
  for (u32 i = 0; i < 2; ++i)
    if (add->operand(i) == x && real_splat(add->operand(1 - i)) == 3.0)
      return true;
  return false;
}

bool hard_swish(Op &op, Rewriter &rw) {
  const Product m = product_of(op);
  if (!m.valid || m.values.size() != 2 || !near_number(m.number, 1.0 / 6))
    return false;
  for (size_t i = 0; i < 2; ++i) {
    Value *x = m.values[i];
    if (x->type() != op.result()->type() || !is_gate_of(m.values[1 - i], x))
      continue;
    rw.replace(op, make(rw, op, op::HARD_SWISH, {x}));
    return true;
  }
  return false;
}

} // namespace

void add_sigmoid_rules(pass::PatternSet &set) { set.add("logistic", {op::DIV}, logistic); }

void fuse_hard_swish(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("hard-swish", {op::MUL, op::DIV}, hard_swish);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

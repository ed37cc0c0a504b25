// fuse-activations: clamps become activations, activations move into the operator before them.
//
//   minimum(maximum(x, 0), 6), maximum(minimum(x, 6), 0) → relu6(x)
//   maximum(x, 0)                                        → relu(x)
//   minimum(minimum(x, a), b), likewise maximum          → minimum(x, min(a, b))
//   relu(add(x, y))                                      → add(x, y) {RELU}
//
// The producer is one of ADD, SUB, MUL, DIV, CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and the
// poolings: the operators whose fused activation runtimes honour. It has no activation yet, and the
// activation is its only user. Floats only.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

bool is_float(const Value *v) { return is_f32(v); }

/// The operand of a MINIMUM or MAXIMUM whose other operand is that number; null when there is none.
Value *bounded(const Value *v, OpCode code, double bound) {
  const Op *p = v->producer();
  if (!p || p->opcode() != code)
    return nullptr;
  for (u32 i = 0; i < 2; ++i)
    if (splat_of(p->operand(i)) == bound && p->operand(1 - i)->type() == v->type())
      return p->operand(1 - i);
  return nullptr;
}

bool is_relu_under_six(const Op &op) {
  // maximum(x, 0) below a minimum with 6 becomes RELU6 with it.
  const ir::Use *u = op.result()->first_use();
  return u && !u->next() &&
         bounded(u->owner()->num_results() ? u->owner()->result() : op.result(), op::MINIMUM, 6) ==
             op.result();
}

bool clamp_to_activation(Op &op, Rewriter &rw) {
  Value *out = op.result();
  if (!is_float(out))
    return false;
  Value *x = nullptr;
  OpCode code = op::RELU6;
  if (Value *low = bounded(out, op::MINIMUM, 6))
    x = bounded(low, op::MAXIMUM, 0);
  if (Value *low = x ? nullptr : bounded(out, op::MINIMUM, 6);
      low && low->producer() && low->producer()->opcode() == op::RELU)
    x = low->producer()->operand(0);
  if (Value *high = x ? nullptr : bounded(out, op::MAXIMUM, 0)) {
    x = bounded(high, op::MINIMUM, 6);
    if (!x && !is_relu_under_six(op)) {
      x = high;
      code = op::RELU;
    }
  }
  if (!x)
    return false;
  const Type type = out->type();
  rw.replace(op,
             rw.before(op).create_typed(code, std::span(&x, 1), {}, std::span(&type, 1))->result());
  return true;
}

/// Two bounds on the same side are one.
bool merge_bounds(Op &op, Rewriter &rw) {
  for (u32 i = 0; i < 2; ++i) {
    const std::optional<double> outer = splat_of(op.operand(i));
    const Op *inner = op.operand(1 - i)->producer();
    if (!outer || !inner || inner->opcode() != op.opcode() || op.operand(i)->type().rank() != 0)
      continue;
    for (u32 k = 0; k < 2; ++k) {
      const std::optional<double> bound = splat_of(inner->operand(k));
      if (!bound || inner->operand(k)->type() != op.operand(i)->type())
        continue;
      const bool keep_outer = op.opcode() == op::MINIMUM ? *outer <= *bound : *outer >= *bound;
      Value *operands[] = {inner->operand(1 - k), keep_outer ? op.operand(i) : inner->operand(k)};
      const Type type = op.result()->type();
      rw.replace(op, recreate(rw, op, operands, std::span(&type, 1))->result());
      return true;
    }
  }
  return false;
}

bool honours_activation(OpCode c) {
  return c == op::ADD || c == op::SUB || c == op::MUL || c == op::DIV || c == op::CONV_2D ||
         c == op::DEPTHWISE_CONV_2D || c == op::FULLY_CONNECTED || c == op::AVERAGE_POOL_2D ||
         c == op::MAX_POOL_2D;
}

bool fuse(Op &op, Rewriter &rw) {
  Op *p = op.operand(0)->producer();
  if (!p || !honours_activation(p->opcode()) || !is_float(op.result()))
    return false;
  if (!op.operand(0)->has_one_use()) {
    rw.reject("the value before the activation has other users");
    return false;
  }
  if (has_activation(*p)) {
    rw.reject("the operator has an activation already");
    return false;
  }
  rw.graph().set_attr(p, static_cast<u32>(activation_slot(*p)),
                      rw.context().string_attr(op.opcode() == op::RELU ? "RELU" : "RELU6"));
  if (op.result()->name())
    rw.graph().set_name(op.operand(0), op.result()->name());
  rw.replace(op, op.operand(0));
  return true;
}

} // namespace

void add_activation_rules(pass::PatternSet &set) {
  set.add("merge-bounds", {op::MINIMUM, op::MAXIMUM}, merge_bounds);
  set.add("clamp-to-activation", {op::MINIMUM, op::MAXIMUM}, clamp_to_activation);
  set.add("fuse-activation", {op::RELU, op::RELU6}, fuse);
}

void fuse_activations(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_activation_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

// drop-identities: operators that hand on their operand.
//
//   cast to the type it has; quantize to the parameters it has        → x
//   x + 0, x - 0, x * 1, x / 1, x ** 1                                → x
//   relu(relu(x)), abs(abs(x)), floor(floor(x)), ceil, round, sign, relu6, relu_n1_to_1,
//     relu(relu6(x)), abs of a square, …                              → the inner one
//   neg(neg(x)), logical_not(logical_not(x))                          → x
//   select(c, x, x), minimum(x, x), maximum(x, x), and, or            → x
//   reductions over dimensions of size 1 (sum, mean, max, min, prod)  → reshape
//   slice of everything, split into one, reshape to the same shape: see their families
//
// Exact; x + 0 turns -0 into 0 in the original. Quantized too: zero and one are meant as real
// numbers, and the type (scale included) has to be the same on both sides. Left alone: fused
// activations, constants that widen x, per-channel parameters.
#include "circle/passes.h"
#include "circle/passes/rules/slices.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

bool same_type(Op &op, Rewriter &rw) {
  if (op.operand(0)->type() != op.result()->type())
    return false;
  rw.replace(op, op.operand(0));
  return true;
}

/// The number that leaves the other operand as it is.
double neutral(OpCode c) { return c == op::ADD || c == op::SUB ? 0.0 : 1.0; }

bool neutral_operand(Op &op, Rewriter &rw) {
  const OpCode c = op.opcode();
  const bool either = c == op::ADD || c == op::MUL;
  for (u32 i = 0; i < 2; ++i) {
    if (i == 0 && !either)
      continue;
    Value *x = op.operand(1 - i);
    const std::optional<double> number = real_splat(op.operand(i));
    if (!number || *number != neutral(c))
      continue;
    if (has_activation(op)) {
      rw.reject("a fused activation");
      return false;
    }
    if (x->type() != op.result()->type() || !is_movable(x->type())) {
      rw.reject("the operand is widened, or quantized differently");
      return false;
    }
    rw.replace(op, x);
    return true;
  }
  return false;
}

/// Whether `outer` leaves what `inner` gives as it is.
bool absorbs(OpCode outer, OpCode inner) {
  if (outer == inner)
    return true;
  const bool clamped_low = inner == op::RELU6 || inner == op::RELU_0_TO_1;
  if (outer == op::RELU)
    return clamped_low || inner == op::ABS || inner == op::SQUARE || inner == op::EXP ||
           inner == op::LOGISTIC;
  if (outer == op::RELU6)
    return inner == op::RELU_0_TO_1 || inner == op::LOGISTIC;
  if (outer == op::ABS)
    return clamped_low || inner == op::RELU || inner == op::SQUARE || inner == op::EXP ||
           inner == op::LOGISTIC;
  if (outer == op::FLOOR || outer == op::CEIL || outer == op::ROUND)
    return inner == op::FLOOR || inner == op::CEIL || inner == op::ROUND || inner == op::SIGN;
  return false;
}

bool idempotent(Op &op, Rewriter &rw) {
  const Op *inner = op.operand(0)->producer();
  if (!inner || !is_circle(inner->opcode()) || !absorbs(op.opcode(), inner->opcode()) ||
      op.operand(0)->type() != op.result()->type())
    return false;
  // Stored numbers of quantized types are clamped to what the type can hold, never below.
  rw.replace(op, op.operand(0));
  return true;
}

bool involution(Op &op, Rewriter &rw) {
  const Op *inner = made_by(op.operand(0), op.opcode());
  if (!inner || inner->operand(0)->type() != op.result()->type() ||
      op.operand(0)->type() != op.result()->type() || op.result()->type().quant())
    return false;
  rw.replace(op, inner->operand(0));
  return true;
}

bool equal_operands(Op &op, Rewriter &rw) {
  const u32 first = op.num_operands() - 2;
  if (op.operand(first) != op.operand(first + 1) ||
      op.operand(first)->type() != op.result()->type())
    return false;
  rw.replace(op, op.operand(first));
  return true;
}

bool reduce_ones(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  const std::optional<Dims> axes = small_ints(op.operand(1));
  if (!axes || !stored_alike(x->type(), op.result()->type()) ||
      x->type().element() == ElementType::Bool)
    return false;
  for (i64 a : *axes) {
    const i64 at = a < 0 ? a + x->type().rank() : a;
    if (at < 0 || at >= x->type().rank() || x->type().dim(static_cast<int>(at)) != SymInt(1))
      return false;
  }
  return replace_by_view(op, rw, x);
}

} // namespace

void add_identity_rules(pass::PatternSet &set) {
  set.add("same-type-cast", {op::CAST, op::QUANTIZE}, same_type);
  set.add("neutral-operand", {op::ADD, op::SUB, op::MUL, op::DIV, op::POW}, neutral_operand);
  set.add("idempotent",
          {op::RELU, op::RELU6, op::RELU_N1_TO_1, op::RELU_0_TO_1, op::ABS, op::FLOOR, op::CEIL,
           op::ROUND, op::SIGN},
          idempotent);
  set.add("involution", {op::NEG, op::LOGICAL_NOT}, involution);
  set.add("equal-operands",
          {op::MINIMUM, op::MAXIMUM, op::LOGICAL_AND, op::LOGICAL_OR, op::SELECT, op::SELECT_V2},
          equal_operands);
  set.add("reduce-ones", {op::SUM, op::MEAN, op::REDUCE_PROD, op::REDUCE_MAX, op::REDUCE_MIN},
          reduce_ones);
}

void drop_identities(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_identity_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

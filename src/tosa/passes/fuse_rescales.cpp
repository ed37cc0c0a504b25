// Fusion of RESCALE operators, among the patterns of tosa-simplify.
//
//   rescale(x) by 1 onto x's own grid                   → x
//   rescale(rescale(x)), the inner one by 1 and wider   → rescale(x) from the inner one's zero
//   point
//
// Illegal: anything else. A RESCALE onto 8 or 16 bits rounds and saturates where the program says
// so; composing its scale with the next one's would leave that out.
#include "tosa/passes/match.h"

namespace chute::tosa {

namespace {

bool is_signed(const Op &op) {
  return !op.attr("input_unsigned").as_bool() && !op.attr("output_unsigned").as_bool();
}

/// Whether every number is kept: multiplier and shift say one, and nothing is unsigned.
bool by_one(const Op &op) {
  const auto multiplier = constant_ints(op.operand(1)), shift = constant_ints(op.operand(2));
  return is_signed(op) && multiplier && shift && multiplier->size() == 1 && shift->size() == 1 &&
         (*shift)[0] >= 0 && (*shift)[0] < 62 && (*multiplier)[0] == i64{1} << (*shift)[0];
}

std::optional<i64> zero_point(const Op &op, u32 operand) {
  const auto v = constant_ints(op.operand(operand));
  return v && v->size() == 1 ? std::optional((*v)[0]) : std::nullopt;
}

bool fuse(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  const auto from = zero_point(op, 3), to = zero_point(op, 4);
  if (by_one(op) && x->type() == op.result()->type() && from && from == to) {
    rw.replace(op, x);
    return true;
  }
  const Op *inner = made_by(x, op::RESCALE);
  if (!inner || !is_signed(op) || from != 0 || !by_one(*inner) || zero_point(*inner, 4) != 0 ||
      ir::element_bits(x->type().element()) <=
          ir::element_bits(inner->operand(0)->type().element()))
    return false;
  Value *operands[] = {inner->operand(0), op.operand(1), op.operand(2), inner->operand(3),
                       op.operand(4)};
  const Type type = op.result()->type();
  return replace_by(rw, op, pass::recreate(rw, op, operands, std::span(&type, 1))->result());
}

} // namespace

void add_rescale_patterns(pass::PatternSet &set) { set.add("fuse-rescales", {op::RESCALE}, fuse); }

} // namespace chute::tosa

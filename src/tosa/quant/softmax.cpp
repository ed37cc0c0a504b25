// Softmax whose steps are not quantized, between a stored operand and a grid:
//
//   quantize(EXP(x - max) * RECIPROCAL(REDUCE_SUM(EXP(x - max))))
//
// x - max is a whole number of steps, so exponentials are looked up without error (of 16 bits: as
// the product of those of the upper and of the lower byte) and add up in 32 bits. The sum is
// normalized by its leading zeros, its reciprocal looked up, the product shifted back.
#include "tosa/quant/fixed_point.h"

#include <cmath>

namespace chute::tosa {

namespace {

constexpr i64 kLongest = 32767; ///< so many exponentials of 16 bits add up in 31
constexpr double kLargest = 65535;

/// The stored operand and axis of the exponentials `v` of what is below its largest.
struct Exponentials {
  Stored x;
  Value *largest = nullptr; ///< stored
  i64 axis = 0;
};

std::optional<Exponentials> exponentials(const Value *v) {
  const ir::Op *exp = v->producer();
  const ir::Op *sub = exp && exp->opcode() == op::EXP ? exp->operand(0)->producer() : nullptr;
  if (!sub || sub->opcode() != op::SUB)
    return std::nullopt;
  const auto x = stored_of(sub->operand(0)), m = stored_of(sub->operand(1));
  const ir::Op *max = m ? m->value->producer() : nullptr;
  if (!x || !max || !x->same_grid(*m) || max->opcode() != op::REDUCE_MAX ||
      max->operand(0) != x->value)
    return std::nullopt;
  return Exponentials{*x, m->value, max->attr("axis").as_int().value()};
}

/// e^(scale * (steps - most)) for u = 256 * steps.
double exponential(double u, double scale) { return std::exp(scale * (u / 256 - 255)); }
double reciprocal(double u, double) { return 1 / (1 + u / 65536); }

/// Exponentials as 16 bits, the largest one 65535.
Value *exponentials_of(Emit &e, const Exponentials &in, bool wide) {
  const bool bytes = in.x.element() == ElementType::I8;
  Value *x = rescale(e, in.x.value, ElementType::I32, 1, in.x.zero_point, 0);
  Value *m = rescale(e, in.largest, ElementType::I32, 1, in.x.zero_point, 0);
  Value *steps = e.add(e.sub(x, m), bytes ? 255.0 : 65535.0); // from 0 on
  if (bytes)
    return look_up(e, e.shift_left(steps, 8), wide, true, exponential, in.x.scale);
  Value *high = e.shift_right(steps, 8);
  Value *low = e.sub(steps, e.shift_left(high, 8));
  Value *coarse = look_up(e, e.shift_left(high, 8), wide, true, exponential, 256 * in.x.scale);
  Value *fine = look_up(e, e.shift_left(low, 8), wide, true, exponential, in.x.scale);
  return mul_shifted(e, coarse, fine, 16);
}

bool softmax(ir::Op &op, pass::Rewriter &rw) {
  const ir::Op *mul = op.operand(0) ? op.operand(0)->producer() : nullptr;
  if (!mul || mul->opcode() != op::MUL)
    return false;
  const ir::Op *one_by = mul->operand(1)->producer();
  const ir::Op *sum =
      one_by && one_by->opcode() == op::RECIPROCAL ? one_by->operand(0)->producer() : nullptr;
  // A sum over one element is that element.
  const Value *summed = sum && sum->opcode() == op::REDUCE_SUM ? sum->operand(0) : nullptr;
  if (!summed || summed != mul->operand(0))
    return false;
  const auto in = exponentials(summed);
  const auto g = in ? grid_of(op) : std::nullopt;
  if (!g || sum->attr("axis").as_int().value() != in->axis ||
      (in->x.element() != ElementType::I8 && in->x.element() != ElementType::I16))
    return false;
  const i64 n = summed->type().dim(static_cast<int>(in->axis)).value();
  if (n > kLongest) {
    rw.reject("too long a sum");
    return false;
  }
  const bool wide = in->x.element() == ElementType::I16 || g->element == ElementType::I16;
  Emit e(op, rw);
  Value *exps = exponentials_of(e, *in, wide);
  Value *total = e(op::REDUCE_SUM, {exps}, {{"axis", of(in->axis)}});
  Value *zeros = leading_zeros(e, total);
  // 2^30 <= normal < 2^31
  Value *normal = shifted_left_by(e, total, e.sub(zeros, 1.0));
  Value *u = e.sub(e.shift_right(normal, 14), 65536.0);
  Value *inverse = look_up(e, u, wide, false, reciprocal);
  // exps / total = exps * inverse / 65535 * 2^(zeros - 31); the largest exponential is 65535, so
  // there are 16 zeros at most.
  Value *product = mul_shifted(e, exps, inverse, 2);
  Value *quotient = shifted_right_by(e, product, e.sub(e.like(zeros, 16), zeros));
  Value *out =
      rescale(e, quotient, g->element, std::ldexp(4 / kLargest, -15) / g->scale, 0, g->zero_point);
  return out && e.finish(limited(e, out, *g));
}

} // namespace

void add_quantized_softmax_rules(pass::PatternSet &set) {
  set.add({"softmax-of-stored", quantize_opcodes(), softmax});
}

} // namespace chute::tosa

// legacy-gelu: GELU whose erf has a layer of its own, as older exporters fold the factor sqrt(1/2)
// into a copy of the layer before.
//
//   y = fully_connected(x, w, b)
//   y * (1 + "Erf"(fully_connected(x, w * sqrt 1/2, b * sqrt 1/2)))  → gelu(y) * 2
//
// The factor moves on into the layer behind, where there is one (affine-before-layer).
//
// f32 only. Legal when every weight and bias of the second layer is the first's times sqrt(1/2), up
// to 1e-6 of the largest of them. Bound: that deviation of the argument of erf, and 8 ulp.
// Left alone: other users of the second layer, other operands, activations, more than 64 MiB.
#include "circle/passes.h"
#include "circle/passes/rules/product.h"

#include <algorithm>
#include <cmath>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

constexpr i64 kMostWeights = i64{16} << 20;

/// Every number of `b` is the one of `a` times sqrt(1/2).
bool is_scaled_copy(const Value *a, const Value *b) {
  if (!a || !b)
    return a == b;
  if (a->type() != b->type())
    return false;
  const auto x = floats(a, kMostWeights), y = floats(b, kMostWeights);
  if (!x || !y)
    return false;
  double largest = 0, apart = 0;
  for (size_t i = 0; i < x->size(); ++i) {
    const double want = std::sqrt(0.5) * static_cast<double>((*x)[i]);
    largest = std::max(largest, std::fabs(want));
    apart = std::max(apart, std::fabs(want - static_cast<double>((*y)[i])));
  }
  return apart <= 1e-6 * largest;
}

const Op *erf_layer(const Value *v) {
  const Op *erf = v->producer();
  if (!erf || erf->opcode() != op::CUSTOM || erf->num_operands() != 1 || erf->num_results() != 1 ||
      !v->has_one_use() || erf->attr("custom_code").as_string() != "Erf")
    return nullptr;
  return made_for_one(erf->operand(0), op::FULLY_CONNECTED);
}

bool same_layer_options(const Op &a, const Op &b) {
  return !has_activation(a) && a.operand(0) == b.operand(0) &&
         a.num_operands() == b.num_operands() && a.num_operands() == 3 &&
         a.result()->type() == b.result()->type() && std::ranges::equal(a.attrs(), b.attrs());
}

bool legacy_gelu(Op &op, Rewriter &rw) {
  if (has_activation(op) || !is_f32(op.result()))
    return false;
  for (u32 i = 0; i < 2; ++i) {
    Value *y = op.operand(i);
    const Op *layer = made_by(y, op::FULLY_CONNECTED);
    const Value *erf = plus_number(op.operand(1 - i), 1);
    const Op *copy = erf && layer ? erf_layer(erf) : nullptr;
    if (!copy || y->type() != op.result()->type() || !same_layer_options(*layer, *copy))
      continue;
    if (!is_scaled_copy(layer->operand(1), copy->operand(1)) ||
        !is_scaled_copy(layer->operand(2), copy->operand(2))) {
      rw.reject("the layer before erf is not the other one times sqrt(1/2)");
      return false;
    }
    Op *custom = erf->producer();
    const float two[] = {2.0f};
    const Type scalar = rw.context().tensor_type(ElementType::F32, {});
    Value *factor = f32_constant(rw, op, scalar, two);
    Value *gelu = make(rw, op, op::GELU, {y}, {{"approximate", Attr::of_bool(false)}});
    rw.replace(op, make(rw, op, op::MUL, {gelu, factor}));
    erase_towards(rw, custom);
    return true;
  }
  return false;
}

} // namespace

void add_legacy_gelu_rules(pass::PatternSet &set) {
  set.add("legacy-gelu", {op::MUL}, legacy_gelu);
}

} // namespace chute::circle

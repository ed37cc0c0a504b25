// Activation functions.
#include "tosa/legalize/emit.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace chute::tosa {

namespace {

namespace a = aten::op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <OpCode code>
Value *unary(Emit &e) {
  return e.unary(code, e.cast(e.arg(0), e.element()));
}

Value *relu(Emit &e) { return e.clamp(e.arg(0), 0, kInfinity); }
Value *relu6(Emit &e) { return e.clamp(e.arg(0), 0, 6); }

Value *gelu(Emit &e) {
  Value *x = e.arg(0);
  Value *half = e.mul(x, 0.5);
  if (e.attr("approximate").as_string() != "tanh")
    return e.mul(half, e.add(e.unary(op::ERF, e.mul(x, 1 / std::numbers::sqrt2)), 1));
  Value *cube = e.mul(e.mul(x, x), x);
  Value *inner = e.mul(e.add(x, e.mul(cube, 0.044715)), std::sqrt(2 / std::numbers::pi));
  return e.mul(half, e.add(e.unary(op::TANH, inner), 1));
}

Value *leaky_relu(Emit &e) {
  Value *x = e.arg(0);
  const double slope = e.number("negative_slope", 0.01);
  if (slope >= 0 && slope <= 1)
    return e.binary(op::MAXIMUM, x, e.mul(x, slope));
  return e.select(e.negative(x), e.mul(x, slope), x);
}

/// scale * (max(x, 0) + alpha * (e^(input_scale * min(x, 0)) - 1)).
Value *elu(Emit &e) {
  Value *x = e.arg(0);
  const double alpha = e.number("alpha", 1), scale = e.number("scale", 1),
               inner = e.number("input_scale", 1);
  Value *low = e.mul(e.clamp(x, -kInfinity, 0), inner);
  Value *curve = e.mul(e.sub(e.unary(op::EXP, low), 1), alpha * scale);
  return e.add(e.mul(e.clamp(x, 0, kInfinity), scale), curve);
}

Value *hardswish(Emit &e) {
  Value *x = e.arg(0);
  return e.mul(x, e.mul(e.clamp(e.add(x, 3), 0, 6), 1.0 / 6.0));
}

/// The slope of channel dimension 1.
Value *prelu(Emit &e) {
  Value *x = e.arg(0), *slope = e.arg(1);
  const int rank = x->type().rank();
  if (rank > 1) {
    Dims shape(static_cast<size_t>(rank), 1);
    shape[1] = slope->type().num_elements();
    slope = e.reshape(slope, shape);
  }
  return e.select(e.negative(x), e.mul(x, slope), x);
}

} // namespace

void add_activation_rules(pass::PatternSet &set) {
  set.add("sigmoid", {a::sigmoid}, lower<unary<op::SIGMOID>>);
  set.add("tanh", {a::tanh}, lower<unary<op::TANH>>);
  set.add("relu", {a::relu}, lower<relu>);
  set.add("relu6", {a::relu6}, lower<relu6>);
  set.add("gelu", {a::gelu}, lower<gelu>);
  set.add("leaky-relu", {a::leaky_relu}, lower<leaky_relu>);
  set.add("elu", {a::elu}, lower<elu>);
  set.add("hardswish", {a::hardswish}, lower<hardswish>);
  set.add("prelu", {a::prelu}, lower<prelu>);
}

} // namespace chute::tosa

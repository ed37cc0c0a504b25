#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"
#include "aten/promotion.h"

#include <cmath>
#include <limits>
#include <numbers>

// Composite elementwise operators.
namespace chute::aten {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Every tensor operand in the type in which PyTorch computes.
Values promoted(Emit &e) {
  const auto compute = computation_type(e.root());
  Values out;
  for (const ir::Use &use : e.root().operand_uses())
    out.push_back(use.value() && compute ? e.cast(use.value(), *compute) : use.value());
  return out;
}

V bound(Emit &e, V x, std::string_view name, bool lower) {
  if (e.root().def().attr_index(name) < 0 || !e.given(name))
    return x;
  V limit = e.scalar(e.attr(name), x->type().element());
  return lower ? e.maximum(x, limit) : e.minimum(x, limit);
}

V clamp(Emit &e) {
  const auto compute = computation_type(e.root());
  if (!compute)
    return e.reject("operand types that PyTorch does not combine");
  V x = e.cast(e.in(), *compute);
  // relu6 is what every target has an operator for.
  if (e.given("min") && e.given("max") && e.number("min") == 0 && e.number("max") == 6 &&
      ir::is_float(*compute))
    return e.relu6(x);
  return bound(e, bound(e, x, "min", true), "max", false);
}

V clamp_tensor(Emit &e) {
  const auto compute = computation_type(e.root());
  if (!compute)
    return e.reject("operand types that PyTorch does not combine");
  V x = e.cast(e.in(), *compute);
  if (V low = e.in(1))
    x = e.maximum(x, e.cast(low, *compute));
  if (V high = e.in(2))
    x = e.minimum(x, e.cast(high, *compute));
  return x;
}

/// value * a (op) b + x, the addc* operators; integers keep their type.
V addc(Emit &e, bool divide) {
  const Values v = promoted(e);
  V product = divide ? e.div(v[1], v[2]) : e.mul(v[1], v[2]);
  if (e.number("value") != 1.0)
    product = e.mul(product, e.scalar(e.attr("value"), product->type().element()));
  return e.add(v[0], product);
}

/// Exact at both ends, as PyTorch: the nearer end is the one added to.
V lerp(Emit &e, V x, V end, V weight) {
  V diff = e.sub(end, x);
  V near_start = e.add(x, e.mul(weight, diff));
  V near_end = e.sub(end, e.mul(e.rsub(1, weight), diff));
  return e.where(e.lt(e.abs(weight), 0.5), near_start, near_end);
}

V xlogy(Emit &e, V x, V y) {
  V value = e.where(e.eq(x, 0.0), e.scalar_like(0, x), e.mul(x, e.log(y)));
  return e.where(e.op(op::isnan_default, {y}), y, value);
}

/// Set for negative numbers and for -0, whose reciprocal is -inf.
V sign_bit(Emit &e, V x) {
  V below = e.lt(x, 0.0);
  if (!ir::is_float(x->type().element()))
    return below;
  return e.lor(below, e.land(e.eq(x, 0.0), e.lt(e.reciprocal(x), 0.0)));
}

/// x * 2^n and floor(x / 2^n): what shifts of two's complement numbers are.
V shift(Emit &e) {
  const Values v = promoted(e);
  V x = v[0];
  const ElementType t = x->type().element();
  if (!ir::is_integer(t))
    return e.reject("a shift of something that is no integer");
  V n = v.size() > 1 ? v[1] : e.scalar(e.attr("other"), t);
  V power = e.pow(e.scalar_like(2, n), n);
  const bool left = e.root().opcode() == op::bitwise_left_shift_Tensor ||
                    e.root().opcode() == op::bitwise_left_shift_Tensor_Scalar;
  return left ? e.mul(x, power) : e.div_floor(x, power);
}

V copysign(Emit &e) {
  const Values v = promoted(e);
  V sign = v.size() != 1 ? v[1] : e.scalar(e.attr("other"), v[0]->type().element());
  V size = e.abs(v[0]);
  return e.where(sign_bit(e, sign), e.neg(size), size);
}

V nan_to_num(Emit &e) {
  V x = e.in();
  const ElementType t = x->type().element();
  if (!ir::is_float(t))
    return x;
  double top = 3.4028234663852886e+38;
  if (t == ElementType::F16)
    top = 65504;
  else if (t == ElementType::BF16)
    top = 3.3895313892515355e+38;
  else if (t == ElementType::F64)
    top = std::numeric_limits<double>::max();
  V y = e.where(e.op(op::isnan_default, {x}),
                e.scalar_like(e.given("nan") ? e.number("nan") : 0.0, x), x);
  y = e.where(e.eq(x, kInf), e.scalar_like(e.given("posinf") ? e.number("posinf") : top, x), y);
  return e.where(e.eq(x, -kInf), e.scalar_like(e.given("neginf") ? e.number("neginf") : -top, x),
                 y);
}

V isclose(Emit &e) {
  V a = e.in(0), b = e.in(1);
  const ElementType t = common_element(a, b);
  a = e.cast(a, t), b = e.cast(b, t);
  V fa = e.to_float(a), fb = e.to_float(b);
  V allowed = e.add(e.mul(e.abs(fb), e.number("rtol")), e.number("atol"));
  V diff = e.abs(e.sub(fa, fb));
  V finite = e.lt(diff, kInf);
  V close = e.lor(e.eq(a, b), e.land(finite, e.le(diff, allowed)));
  if (e.flag("equal_nan"))
    close = e.lor(close, e.land(e.op(op::isnan_default, {fa}), e.op(op::isnan_default, {fb})));
  return close;
}

V masked_fill(Emit &e) {
  const ElementType t = e.type().element();
  V value = e.root().opcode() == op::masked_fill_Scalar ? e.scalar(e.attr("value"), t)
                                                        : e.cast(e.in(2), t);
  return e.where(e.in(1), value, e.cast(e.in(), t));
}

} // namespace

void add_elementwise_rules(pass::PatternSet &set) {
  set.add("clamp", {op::clamp, op::clamp_max, op::clamp_min}, rule<clamp>);
  set.add("clamp-tensor", {op::clamp_Tensor, op::clip_Tensor}, rule<clamp_tensor>);
  set.add("clamp-max-tensor", {op::clamp_max_Tensor},
          rule<[](Emit &e) { return e.minimum(e.in(0), e.in(1)); }>);
  set.add("clamp-min-tensor", {op::clamp_min_Tensor},
          rule<[](Emit &e) { return e.maximum(e.in(0), e.in(1)); }>);
  set.add("addcmul", {op::addcmul}, rule<[](Emit &e) { return addc(e, false); }>);
  set.add("addcdiv", {op::addcdiv}, rule<[](Emit &e) { return addc(e, true); }>);
  set.add("lerp-scalar", {op::lerp_Scalar}, rule<[](Emit &e) {
            const double w = e.number("weight");
            V x = e.in(0), end = e.in(1), diff = e.sub(end, x);
            return std::abs(w) < 0.5 ? e.add(x, e.mul(diff, w)) : e.sub(end, e.mul(diff, 1 - w));
          }>);
  set.add("lerp-tensor", {op::lerp_Tensor},
          rule<[](Emit &e) { return lerp(e, e.in(0), e.in(1), e.in(2)); }>);
  set.add("rsub", {op::rsub_Tensor}, rule<[](Emit &e) {
            // alpha scales in the type that both operands have in common.
            return e.op(op::sub_Tensor, {e.in(1), e.in(0)}, {{"alpha", e.attr("alpha")}});
          }>);
  set.add("square", {op::square}, rule<[](Emit &e) { return e.mul(e.in(), e.in()); }>);
  set.add("frac", {op::frac}, rule<[](Emit &e) { return e.sub(e.in(), e.trunc(e.in())); }>);
  set.add("floor-divide", {op::floor_divide},
          rule<[](Emit &e) { return e.div_floor(e.in(0), e.in(1)); }>);
  set.add("sgn", {op::sgn}, rule<[](Emit &e) -> V {
            return ir::is_complex(e.in()->type().element()) ? nullptr : e.sign(e.in());
          }>);
  set.add("exp2", {op::exp2}, rule<[](Emit &e) {
            V x = e.to_float(e.in());
            return e.pow(e.scalar_like(2, x), x);
          }>);
  set.add("erfc", {op::erfc},
          rule<[](Emit &e) { return e.rsub(1, e.op(op::erf, {e.to_float(e.in())})); }>);
  set.add("deg2rad", {op::deg2rad},
          rule<[](Emit &e) { return e.mul(e.to_float(e.in()), std::numbers::pi / 180); }>);
  set.add("rad2deg", {op::rad2deg},
          rule<[](Emit &e) { return e.mul(e.to_float(e.in()), 180 / std::numbers::pi); }>);
  set.add("sinc", {op::sinc}, rule<[](Emit &e) {
            V x = e.mul(e.to_float(e.in()), std::numbers::pi);
            V zero = e.eq(x, 0.0);
            return e.where(zero, e.scalar_like(1, x), e.div(e.op(op::sin, {x}), x));
          }>);
  set.add("logit", {op::logit}, rule<[](Emit &e) {
            V x = e.up(e.to_float(e.in()));
            if (e.given("eps"))
              x = e.minimum(e.maximum(x, e.number("eps")), 1 - e.number("eps"));
            return e.log(e.div(x, e.rsub(1, x)));
          }>);
  set.add("xlogy", {op::xlogy_Tensor}, rule<[](Emit &e) {
            const Values v = promoted(e);
            return xlogy(e, v[0], v[1]);
          }>);
  set.add("xlogy-other", {op::xlogy_Scalar_Other}, rule<[](Emit &e) {
            V x = promoted(e)[0];
            return xlogy(e, x, e.scalar(e.attr("other"), x->type().element()));
          }>);
  set.add("xlogy-self", {op::xlogy_Scalar_Self}, rule<[](Emit &e) {
            V y = promoted(e)[0];
            return xlogy(e, e.scalar(e.attr("self"), y->type().element()), y);
          }>);
  set.add("isfinite", {op::isfinite_default}, rule<[](Emit &e) {
            return ir::is_float(e.in()->type().element()) ? e.lt(e.abs(e.in()), kInf)
                                                          : e.full(e.shape(), 1, ElementType::Bool);
          }>);
  set.add("isposinf", {op::isposinf}, rule<[](Emit &e) {
            return ir::is_float(e.in()->type().element()) ? e.eq(e.in(), kInf)
                                                          : e.full(e.shape(), 0, ElementType::Bool);
          }>);
  set.add("isneginf", {op::isneginf}, rule<[](Emit &e) {
            return ir::is_float(e.in()->type().element()) ? e.eq(e.in(), -kInf)
                                                          : e.full(e.shape(), 0, ElementType::Bool);
          }>);
  set.add("isclose", {op::isclose}, rule<isclose>);
  set.add("nan-to-num", {op::nan_to_num}, rule<nan_to_num>);
  set.add("masked-fill", {op::masked_fill_Scalar, op::masked_fill_Tensor}, rule<masked_fill>);
  set.add("hypot", {op::hypot}, rule<[](Emit &e) {
            V a = e.in(0), b = e.in(1);
            return e.sqrt(e.add(e.mul(a, a), e.mul(b, b)));
          }>);
  set.add("logaddexp", {op::logaddexp}, rule<[](Emit &e) {
            V a = e.in(0), b = e.in(1), top = e.maximum(a, b);
            V sum = e.add(top, e.log1p(e.exp(e.neg(e.abs(e.sub(a, b))))));
            // Equal infinities: their difference is no number.
            return e.where(e.land(e.eq(a, b), e.eq(e.abs(top), kInf)), top, sum);
          }>);
  set.add("fmax", {op::fmax}, rule<[](Emit &e) {
            V a = e.in(0), b = e.in(1);
            return e.where(e.lor(e.ge(a, b), e.op(op::isnan_default, {b})), a, b);
          }>);
  set.add("fmin", {op::fmin}, rule<[](Emit &e) {
            V a = e.in(0), b = e.in(1);
            return e.where(e.lor(e.le(a, b), e.op(op::isnan_default, {b})), a, b);
          }>);
  set.add("heaviside", {op::heaviside}, rule<[](Emit &e) {
            V x = e.in(0);
            V step = e.cast(e.gt(x, 0.0), e.type().element());
            return e.where(e.eq(x, 0.0), e.cast(e.in(1), e.type().element()), step);
          }>);
  set.add(
      "float-power", {op::float_power_Tensor_Scalar},
      rule<[](Emit &e) { return e.pow(e.cast(e.in(), ElementType::F64), e.number("exponent")); }>);
  set.add("float-power-tensor", {op::float_power_Tensor_Tensor}, rule<[](Emit &e) {
            return e.pow(e.cast(e.in(0), ElementType::F64), e.cast(e.in(1), ElementType::F64));
          }>);
  set.add("shift",
          {op::bitwise_left_shift_Tensor, op::bitwise_left_shift_Tensor_Scalar,
           op::bitwise_right_shift_Tensor, op::bitwise_right_shift_Tensor_Scalar},
          rule<shift>);
  set.add("copysign", {op::copysign_Tensor, op::copysign_Scalar}, rule<copysign>);
  set.add("signbit", {op::signbit_default}, rule<[](Emit &e) {
            return e.in()->type().element() == ElementType::Bool
                       ? e.full(e.shape(), 0, ElementType::Bool)
                       : sign_bit(e, e.in());
          }>);
  set.add("ldexp", {op::ldexp_Tensor}, rule<[](Emit &e) {
            V n = e.to_float(e.in(1));
            return e.mul(e.to_float(e.in(0)), e.pow(e.scalar_like(2, n), n));
          }>);
  set.add("logaddexp2", {op::logaddexp2}, rule<[](Emit &e) {
            V a = e.in(0), b = e.in(1), top = e.maximum(a, b);
            V less = e.mul(e.neg(e.abs(e.sub(a, b))), std::numbers::ln2);
            V sum = e.add(top, e.div(e.log1p(e.exp(less)), std::numbers::ln2));
            return e.where(e.land(e.eq(a, b), e.eq(e.abs(top), kInf)), top, sum);
          }>);
  set.add("xlog1py", {op::special_xlog1py}, rule<[](Emit &e) {
            const Values v = promoted(e);
            return xlogy(e, v[0], e.add(v[1], 1.0));
          }>);
}

} // namespace chute::aten

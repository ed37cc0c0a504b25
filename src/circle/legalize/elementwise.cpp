// Arithmetic, comparisons, logic, casts and activations that Circle has as operators, or nearly so.
#include "circle/legalize/emit.h"

#include <cmath>
#include <limits>

namespace chute::circle {

namespace {

namespace a = aten::op;

/// Operand `i` in the element type of the result (torch promotes on the way).
Value *promoted(Emit &e, u32 i) { return e.cast(e.arg(i), e.element()); }

bool is_bool(const Value *v) { return v->type().element() == ElementType::Bool; }
bool is_float(const Value *v) { return ir::is_float(v->type().element()); }

template <OpCode code>
Value *unary(Emit &e) {
  return e(code, {promoted(e, 0)});
}

/// Arithmetic that on bool is a logical operator (or, and, xor) in torch.
template <OpCode code, OpCode on_bool>
Value *arithmetic(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (e.element() == ElementType::Bool)
    return e(on_bool, {x, y});
  if constexpr (code == op::ADD)
    return e.add(x, y);
  else if constexpr (code == op::SUB)
    return e.sub(x, y);
  else
    return e(code, {x, y});
}

template <OpCode code>
Value *compare(Emit &e) {
  return e(code, {e.arg(0), e.arg(1)});
}
template <OpCode code>
Value *logical(Emit &e) {
  return e(code, {e.as_bool(e.arg(0)), e.as_bool(e.arg(1))});
}

Value *bitwise_not(Emit &e) {
  Value *x = e.arg(0);
  if (is_bool(x))
    return e(op::LOGICAL_NOT, {x});
  return e.sub(e(op::NEG, {x}), e.like(x, 1)); // two's complement
}

Value *logical_not(Emit &e) {
  Value *x = e.arg(0);
  return is_bool(x) ? e(op::LOGICAL_NOT, {x}) : e(op::EQUAL, {x, e.like(x, 0)});
}

Value *divide(Emit &e) { return e.div(promoted(e, 0), promoted(e, 1)); }

Value *round_of(Emit &e, Value *x) { return e(op::ROUND, {x}); }
Value *floor_of(Emit &e, Value *x) { return e(op::FLOOR, {x}); }
/// ceil(x) = -floor(-x); CEIL itself is in no runtime.
Value *ceil_of(Emit &e, Value *x) { return e(op::NEG, {floor_of(e, e(op::NEG, {x}))}); }
Value *trunc_of(Emit &e, Value *x) {
  return e.select(e(op::LESS, {x, e.like(x, 0)}), ceil_of(e, x), floor_of(e, x));
}

template <Value *(*fn)(Emit &, Value *)>
Value *rounding(Emit &e) {
  Value *x = e.arg(0);
  return is_float(x) ? fn(e, x) : x;
}

/// floor(x / y) of integers from the truncating quotient: one less where the remainder has a sign
/// other than the divisor's.
Value *floor_div_ints(Emit &e, Value *x, Value *y) {
  if (e.element() == ElementType::I32)
    return e(op::FLOOR_DIV, {x, y});
  Value *q = e.div(x, y);
  Value *rest = e.sub(x, e.mul(q, y));
  Value *zero = e.like(x, 0);
  Value *apart = e(op::NOT_EQUAL, {e(op::LESS, {rest, zero}), e(op::LESS, {y, zero})});
  Value *inexact = e(op::NOT_EQUAL, {rest, zero});
  Value *down = e.cast(e(op::LOGICAL_AND, {apart, inexact}), e.element());
  return e.sub(q, down);
}

Value *divide_mode(Emit &e) {
  const Attr mode = e.attr("rounding_mode");
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (mode.is_none())
    return e.div(x, y);
  const bool floor = mode.as_string() == "floor";
  if (ir::is_float(e.element()))
    return floor ? e(op::FLOOR_DIV, {x, y}) : trunc_of(e, e.div(x, y));
  return floor ? floor_div_ints(e, x, y) : e.div(x, y);
}

/// torch.remainder: sign of the divisor.
Value *remainder(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (e.element() == ElementType::I32)
    return e.sub(x, e.mul(floor_div_ints(e, x, y), y));
  return e(op::FLOOR_MOD, {x, y});
}

/// torch.fmod: sign of the dividend. On floats |x| mod |y| is exact either way.
Value *fmod(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (!ir::is_float(e.element()))
    return e.sub(x, e.mul(e.div(x, y), y));
  Value *m = e(op::FLOOR_MOD, {e(op::ABS, {x}), e(op::ABS, {y})});
  return e.select(e(op::LESS, {x, e.like(x, 0)}), e(op::NEG, {m}), m);
}

Value *power(Emit &e) {
  Value *x = promoted(e, 0);
  if (const std::optional<double> p = splat_of(e.arg(1));
      p && e.arg(1)->type().num_elements() == 1 &&
      x->type().shape().size() == e.type().shape().size()) {
    const bool real = ir::is_float(e.element());
    if (*p == 1)
      return x;
    if (*p == 2)
      return e.mul(x, x);
    if (real && *p == 0.5)
      return e(op::SQRT, {x});
    if (real && *p == -0.5)
      return e(op::RSQRT, {x});
    if (real && *p == -1)
      return e.div(e.like(x, 1), x);
  }
  return e(op::POW, {x, promoted(e, 1)});
}

Value *where(Emit &e) { return e.select(e.as_bool(e.arg(0)), promoted(e, 1), promoted(e, 2)); }

Value *to_copy(Emit &e) { return e.cast(e.arg(0), e.element()); }

Value *sign(Emit &e) {
  // 0 for NaN, as torch.
  Value *x = e.arg(0);
  if (is_bool(x))
    return x;
  Value *zero = e.like(x, 0);
  return e.sub(e.cast(e(op::GREATER, {x, zero}), e.element()),
               e.cast(e(op::LESS, {x, zero}), e.element()));
}

Value *isnan(Emit &e) { return e(op::NOT_EQUAL, {e.arg(0), e.arg(0)}); }
Value *isinf(Emit &e) {
  Value *x = e.arg(0);
  if (!is_float(x))
    return e(op::NOT_EQUAL, {x, x});
  return e(op::EQUAL, {e(op::ABS, {x}), e.like(x, std::numeric_limits<double>::infinity())});
}

Value *reciprocal(Emit &e) {
  Value *x = promoted(e, 0);
  return e.div(e.like(x, 1), x);
}

Value *gelu(Emit &e) {
  return e(op::GELU, {e.arg(0)},
           {{"approximate", of(e.attr("approximate").as_string() == "tanh")}});
}

Value *leaky_relu(Emit &e) {
  return e(op::LEAKY_RELU, {e.arg(0)}, {{"alpha", of(e.number("negative_slope", 0.01))}});
}

/// scale * (max(x, 0) + alpha * min(elu(input_scale * x), 0)); the plain ELU is one operator.
Value *elu(Emit &e) {
  Value *x = e.arg(0);
  const double alpha = e.number("alpha", 1), scale = e.number("scale", 1),
               inner = e.number("input_scale", 1);
  if (alpha == 1 && scale == 1 && inner == 1)
    return e(op::ELU, {x});
  Value *curve = e(op::ELU, {inner == 1 ? x : e.mul(x, e.like(x, inner))});
  Value *low = e.mul(e(op::MINIMUM, {curve, e.like(x, 0)}), e.like(x, alpha));
  Value *sum = e.add(e(op::RELU, {x}), low);
  return scale == 1 ? sum : e.mul(sum, e.like(x, scale));
}

Value *hardswish(Emit &e) {
  Value *x = e.arg(0);
  return e.mul(e.mul(x, e.add(x, e.like(x, 3), "RELU6")), e.like(x, 1.0 / 6.0));
}

/// The slope of channel dimension 1, aligned so that it broadcasts against the input.
Value *prelu(Emit &e) {
  Value *x = e.arg(0), *slope = e.arg(1);
  const int rank = x->type().rank();
  if (slope->type().num_elements() > 1 && rank > 2) {
    Dims shape(static_cast<size_t>(rank) - 1, 1);
    shape[0] = slope->type().dim(0).value();
    slope = e.reshape(slope, shape);
  } else if (slope->type().rank() == 0) {
    slope = e.reshape(slope, Dims{1});
  }
  return slope ? e(op::PRELU, {x, slope}) : nullptr;
}

} // namespace

void add_elementwise_rules(pass::PatternSet &set) {
  set.add("abs", {a::abs}, lower<unary<op::ABS>>);
  set.add("neg", {a::neg}, lower<unary<op::NEG>>);
  set.add("cos", {a::cos}, lower<unary<op::COS>>);
  set.add("sin", {a::sin}, lower<unary<op::SIN>>);
  set.add("exp", {a::exp}, lower<unary<op::EXP>>);
  set.add("log", {a::log}, lower<unary<op::LOG>>);
  set.add("sqrt", {a::sqrt}, lower<unary<op::SQRT>>);
  set.add("rsqrt", {a::rsqrt}, lower<unary<op::RSQRT>>);
  set.add("sigmoid", {a::sigmoid}, lower<unary<op::LOGISTIC>>);
  set.add("tanh", {a::tanh}, lower<unary<op::TANH>>);
  set.add("relu", {a::relu}, lower<unary<op::RELU>>);
  set.add("relu6", {a::relu6}, lower<unary<op::RELU6>>);
  set.add("round", {a::round}, lower<rounding<round_of>>);
  set.add("floor", {a::floor}, lower<rounding<floor_of>>);
  set.add("ceil", {a::ceil}, lower<rounding<ceil_of>>);
  set.add("trunc", {a::trunc}, lower<rounding<trunc_of>>);
  set.add("sign", {a::sign}, lower<sign>);
  set.add("isnan", {a::isnan_default}, lower<isnan>);
  set.add("isinf", {a::isinf_default}, lower<isinf>);
  set.add("reciprocal", {a::reciprocal}, lower<reciprocal>);
  set.add("logical-not", {a::logical_not}, lower<logical_not>);
  set.add("bitwise-not", {a::bitwise_not}, lower<bitwise_not>);

  set.add("add", {a::add_Tensor}, lower<arithmetic<op::ADD, op::LOGICAL_OR>>);
  set.add("sub", {a::sub_Tensor}, lower<arithmetic<op::SUB, op::NOT_EQUAL>>);
  set.add("mul", {a::mul_Tensor}, lower<arithmetic<op::MUL, op::LOGICAL_AND>>);
  set.add("maximum", {a::maximum}, lower<arithmetic<op::MAXIMUM, op::LOGICAL_OR>>);
  set.add("minimum", {a::minimum}, lower<arithmetic<op::MINIMUM, op::LOGICAL_AND>>);
  set.add("div", {a::div_Tensor}, lower<divide>);
  set.add("div-mode", {a::div_Tensor_mode}, lower<divide_mode>);
  set.add("remainder", {a::remainder_Tensor}, lower<remainder>);
  set.add("fmod", {a::fmod_Tensor}, lower<fmod>);
  set.add("pow", {a::pow_Tensor_Tensor}, lower<power>);
  set.add("eq", {a::eq_Tensor}, lower<compare<op::EQUAL>>);
  set.add("ne", {a::ne_Tensor}, lower<compare<op::NOT_EQUAL>>);
  set.add("lt", {a::lt_Tensor}, lower<compare<op::LESS>>);
  set.add("le", {a::le_Tensor}, lower<compare<op::LESS_EQUAL>>);
  set.add("gt", {a::gt_Tensor}, lower<compare<op::GREATER>>);
  set.add("ge", {a::ge_Tensor}, lower<compare<op::GREATER_EQUAL>>);
  set.add("logical-and", {a::logical_and}, lower<logical<op::LOGICAL_AND>>);
  set.add("logical-or", {a::logical_or}, lower<logical<op::LOGICAL_OR>>);
  set.add("logical-xor", {a::logical_xor}, lower<logical<op::NOT_EQUAL>>);
  set.add("where", {a::where_self}, lower<where>);
  set.add("cast", {a::u_to_copy}, lower<to_copy>);

  set.add("gelu", {a::gelu}, lower<gelu>);
  set.add("leaky-relu", {a::leaky_relu}, lower<leaky_relu>);
  set.add("elu", {a::elu}, lower<elu>);
  set.add("hardswish", {a::hardswish}, lower<hardswish>);
  set.add("prelu", {a::prelu}, lower<prelu>);
}

} // namespace chute::circle

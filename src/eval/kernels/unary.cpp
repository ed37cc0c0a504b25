// Elementwise operators of one tensor. Functions of the mathematics library are evaluated in double
// and rounded to the result, also for f32: that is right to the last bit but for rare halfway
// cases, and does not depend on which variant of expf or sinf the machine's libm picks.

#include "eval/kernels/elementwise.h"
#include "eval/kernels/families.h"
#include "eval/kernels/special.h"

#include <cmath>
#include <limits>

namespace chute::eval {

namespace {

enum class Unary : u8 {
  Abs,
  Acos,
  Acosh,
  Angle,
  Asin,
  Asinh,
  Atan,
  Atanh,
  BitNot,
  Ceil,
  Celu,
  Clamp,
  ClampMax,
  ClampMin,
  Copy,
  Cos,
  Cosh,
  Deg2Rad,
  Digamma,
  Elu,
  Erf,
  Erfc,
  Erfinv,
  Exp,
  Exp2,
  Expm1,
  Floor,
  Frac,
  GeluErf,
  GeluTanh,
  HardShrink,
  HardSigmoid,
  HardSwish,
  I0,
  IsFinite,
  IsInf,
  IsNan,
  IsNegInf,
  IsPosInf,
  LeakyRelu,
  Lgamma,
  Log,
  Log10,
  Log1p,
  Log2,
  LogSigmoid,
  LogicalNot,
  Logit,
  Mish,
  NanToNum,
  Neg,
  Polygamma,
  Rad2Deg,
  Reciprocal,
  Relu,
  Relu6,
  Round,
  Rsqrt,
  Selu,
  Sgn,
  Sigmoid,
  Sign,
  SignBit,
  Silu,
  Sin,
  Sinc,
  Sinh,
  SoftPlus,
  SoftShrink,
  Sqrt,
  Square,
  Tan,
  Tanh,
  Threshold,
  Trunc,
};

/// Numbers of the operator, in the meaning of each case below.
struct Params {
  Scalar a, b, c;
  bool has_a = false;
  bool has_b = false;
  ElementType element = ElementType::F32; ///< of the result
};

template <class C>
struct Loop {
  const C *x;
  C *y;
  i64 n;
  /// In the compute type.
  template <class F>
  bool own(F f) const {
    for (i64 i = 0; i < n; ++i)
      y[i] = static_cast<C>(f(x[i]));
    return true;
  }
  /// In double, rounded once.
  template <class F>
  bool wide(F f) const {
    for (i64 i = 0; i < n; ++i)
      y[i] = static_cast<C>(f(static_cast<double>(x[i])));
    return true;
  }
};

template <class C>
C positive_clamp(C v, C low, C high) {
  // NaN compares false and stays.
  return v < low ? low : high < v ? high : v;
}

/// Largest finite value of a float element type, for nan_to_num.
double largest(ElementType t) {
  switch (t) {
  case ElementType::F16: return 65504;
  case ElementType::BF16: return 0x1.FEp127;
  case ElementType::F64: return std::numeric_limits<double>::max();
  default: return static_cast<double>(std::numeric_limits<float>::max());
  }
}

/// Operators that both integers and floats have. Returns false for any other.
template <class C>
bool common_block(Unary op, const Loop<C> &loop, const Params &p) {
  constexpr bool is_int = std::is_integral_v<C>;
  const C a = as_compute<C>(p.a);
  const C b = as_compute<C>(p.b);
  switch (op) {
  case Unary::Copy: return loop.own([](C v) { return v; });
  case Unary::Abs:
    return loop.own([](C v) -> C {
      if constexpr (is_int)
        return std::is_signed_v<C> && v < 0 ? static_cast<C>(0 - static_cast<u64>(v)) : v;
      else
        return std::fabs(v);
    });
  case Unary::Neg:
    return loop.own([](C v) -> C {
      if constexpr (is_int)
        return static_cast<C>(0 - static_cast<u64>(v));
      else
        return -v;
    });
  case Unary::Square:
    return loop.own([](C v) -> C {
      if constexpr (is_int)
        return static_cast<C>(static_cast<u64>(v) * static_cast<u64>(v));
      else
        return v * v;
    });
  case Unary::Sign:
  case Unary::Sgn: return loop.own([](C v) { return static_cast<C>((C{0} < v) - (v < C{0})); });
  case Unary::SignBit:
    return loop.own([](C v) {
      if constexpr (is_int)
        return static_cast<C>(v < C{0});
      else
        return static_cast<C>(std::signbit(v));
    });
  case Unary::Relu: return loop.own([](C v) { return v < C{0} ? C{0} : v; });
  case Unary::Relu6: return loop.own([](C v) { return positive_clamp<C>(v, 0, 6); });
  case Unary::Clamp:
    // As torch: a lower bound above the upper one loses.
    if (p.has_a && p.has_b)
      return loop.own([=](C v) {
        const C low = v < a ? a : v;
        return b < low ? b : low;
      });
    if (p.has_a)
      return loop.own([=](C v) { return v < a ? a : v; });
    if (p.has_b)
      return loop.own([=](C v) { return b < v ? b : v; });
    return loop.own([](C v) { return v; });
  case Unary::Threshold: return loop.own([=](C v) { return v <= a ? b : v; });
  case Unary::LogicalNot: return loop.own([](C v) { return static_cast<C>(v == C{0}); });
  case Unary::HardShrink: return loop.own([=](C v) { return -a <= v && v <= a ? C{0} : v; });
  default: return false;
  }
}

bool integer_block(Unary op, const Loop<i64> &loop, const Params &p) {
  switch (op) {
  case Unary::BitNot:
    if (p.element == ElementType::Bool)
      return loop.own([](i64 v) { return v == 0; });
    return loop.own([](i64 v) { return ~v; });
  case Unary::Ceil:
  case Unary::Floor:
  case Unary::Round:
  case Unary::Trunc:
  case Unary::NanToNum: return loop.own([](i64 v) { return v; });
  case Unary::IsNan:
  case Unary::IsInf:
  case Unary::IsNegInf:
  case Unary::IsPosInf: return loop.own([](i64) { return 0; });
  case Unary::IsFinite: return loop.own([](i64) { return 1; });
  default: return false;
  }
}

/// Rounding, classification and other operators that are exact in the compute type.
template <class C>
bool exact_block(Unary op, const Loop<C> &loop, const Params &p) {
  const C a = as_compute<C>(p.a);
  switch (op) {
  case Unary::Ceil: return loop.own([](C v) { return std::ceil(v); });
  case Unary::Floor: return loop.own([](C v) { return std::floor(v); });
  case Unary::Trunc: return loop.own([](C v) { return std::trunc(v); });
  case Unary::Round: return loop.own([](C v) { return std::nearbyint(v); });
  case Unary::Frac: return loop.own([](C v) { return v - std::trunc(v); });
  case Unary::IsNan: return loop.own([](C v) { return std::isnan(v); });
  case Unary::IsInf: return loop.own([](C v) { return std::isinf(v); });
  case Unary::IsFinite: return loop.own([](C v) { return std::isfinite(v); });
  case Unary::IsNegInf: return loop.own([](C v) { return std::isinf(v) && v < 0; });
  case Unary::IsPosInf: return loop.own([](C v) { return std::isinf(v) && v > 0; });
  case Unary::Reciprocal: return loop.own([](C v) { return C{1} / v; });
  case Unary::Sqrt: return loop.own([](C v) { return std::sqrt(v); });
  case Unary::LeakyRelu: return loop.own([=](C v) { return v > 0 ? v : v * a; });
  case Unary::SoftShrink:
    return loop.own([=](C v) { return v > a ? v - a : v < -a ? v + a : v * C{0}; });
  case Unary::NanToNum: {
    const auto high = static_cast<C>(largest(p.element));
    const C nan = p.has_a ? a : C{0};
    const C up = p.has_b ? as_compute<C>(p.b) : high;
    const C down = std::isnan(p.c.real) ? -high : as_compute<C>(p.c);
    return loop.own([=](C v) {
      return std::isnan(v) ? nan : !std::isinf(v) ? v : v > 0 ? up : down;
    });
  }
  default: return false;
  }
}

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
double softplus(double v) { return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v)); }

template <class C>
bool activation_block(Unary op, const Loop<C> &loop, const Params &p) {
  const double a = p.a.real;
  const double b = p.b.real;
  const double c = p.c.real;
  switch (op) {
  case Unary::Sigmoid: return loop.wide(sigmoid);
  case Unary::LogSigmoid: return loop.wide([](double v) { return -softplus(-v); });
  case Unary::Silu: return loop.wide([](double v) { return v / (1 + std::exp(-v)); });
  case Unary::Mish: return loop.wide([](double v) { return v * std::tanh(softplus(v)); });
  case Unary::SoftPlus:
    return loop.wide([=](double v) { return v * a > b ? v : softplus(v * a) / a; });
  case Unary::GeluErf:
    return loop.wide([](double v) { return 0.5 * v * (1 + std::erf(v * M_SQRT1_2)); });
  case Unary::GeluTanh:
    return loop.wide([](double v) {
      const double inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      return 0.5 * v * (1 + std::tanh(inner));
    });
  case Unary::HardSigmoid:
    return loop.wide([](double v) { return positive_clamp<double>(v + 3, 0, 6) / 6; });
  case Unary::HardSwish:
    return loop.wide([](double v) { return v * positive_clamp<double>(v + 3, 0, 6) / 6; });
  case Unary::Elu: // alpha, scale, input_scale
    return loop.wide([=](double v) { return v <= 0 ? std::expm1(v * c) * a * b : v * b; });
  case Unary::Celu: return loop.wide([=](double v) { return v <= 0 ? std::expm1(v / a) * a : v; });
  case Unary::Selu: {
    constexpr double kAlpha = 1.6732632423543772848170429916717;
    constexpr double kScale = 1.0507009873554804934193349852946;
    return loop.wide(
        [=](double v) { return v <= 0 ? std::expm1(v) * kAlpha * kScale : v * kScale; });
  }
  default: return false;
  }
}

template <class C>
bool function_block(Unary op, const Loop<C> &loop, const Params &p) {
  const double a = p.a.real;
  switch (op) {
  case Unary::Acos: return loop.wide([](double v) { return std::acos(v); });
  case Unary::Acosh: return loop.wide([](double v) { return std::acosh(v); });
  case Unary::Asin: return loop.wide([](double v) { return std::asin(v); });
  case Unary::Asinh: return loop.wide([](double v) { return std::asinh(v); });
  case Unary::Atan: return loop.wide([](double v) { return std::atan(v); });
  case Unary::Atanh: return loop.wide([](double v) { return std::atanh(v); });
  case Unary::Cos: return loop.wide([](double v) { return std::cos(v); });
  case Unary::Cosh: return loop.wide([](double v) { return std::cosh(v); });
  case Unary::Sin: return loop.wide([](double v) { return std::sin(v); });
  case Unary::Sinh: return loop.wide([](double v) { return std::sinh(v); });
  case Unary::Tan: return loop.wide([](double v) { return std::tan(v); });
  case Unary::Tanh: return loop.wide([](double v) { return std::tanh(v); });
  case Unary::Erf: return loop.wide([](double v) { return std::erf(v); });
  case Unary::Erfc: return loop.wide([](double v) { return std::erfc(v); });
  case Unary::Erfinv: return loop.wide(erfinv);
  case Unary::Exp: return loop.wide([](double v) { return std::exp(v); });
  case Unary::Exp2: return loop.wide([](double v) { return std::exp2(v); });
  case Unary::Expm1: return loop.wide([](double v) { return std::expm1(v); });
  case Unary::Log: return loop.wide([](double v) { return std::log(v); });
  case Unary::Log10: return loop.wide([](double v) { return std::log10(v); });
  case Unary::Log1p: return loop.wide([](double v) { return std::log1p(v); });
  case Unary::Log2: return loop.wide([](double v) { return std::log2(v); });
  case Unary::Rsqrt: return loop.wide([](double v) { return 1 / std::sqrt(v); });
  case Unary::Deg2Rad: return loop.wide([](double v) { return v * (M_PI / 180); });
  case Unary::Rad2Deg: return loop.wide([](double v) { return v * (180 / M_PI); });
  case Unary::Digamma: return loop.wide(digamma);
  case Unary::Polygamma: return loop.wide(p.a.integer == 0 ? digamma : trigamma);
  case Unary::Lgamma:
    return loop.wide([](double v) {
      int sign; // the variant without a global, which several threads may call
      return ::lgamma_r(v, &sign);
    });
  case Unary::I0: return loop.wide(bessel_i0);
  case Unary::Sinc:
    return loop.wide([](double v) { return v == 0 ? 1.0 : std::sin(M_PI * v) / (M_PI * v); });
  case Unary::Angle:
    return loop.wide([](double v) { return std::isnan(v) ? v : v < 0 ? M_PI : 0.0; });
  case Unary::Logit:
    return loop.wide([=, has = p.has_a](double v) {
      if (has)
        v = positive_clamp(v, a, 1 - a);
      return std::log(v / (1 - v));
    });
  default: return false;
  }
}

template <class C>
bool unary_block(Unary op, const Loop<C> &loop, const Params &p) {
  if (common_block(op, loop, p))
    return true;
  if constexpr (std::is_same_v<C, i64>)
    return integer_block(op, loop, p);
  else if constexpr (std::is_floating_point_v<C>)
    return exact_block(op, loop, p) || activation_block(op, loop, p) || function_block(op, loop, p);
  else
    return integer_block(
        op,
        Loop<i64>{reinterpret_cast<const i64 *>(loop.x), reinterpret_cast<i64 *>(loop.y), loop.n},
        p);
}

Status run_unary(KernelContext &ctx, Unary op, const Params &given, u32 spec = 0) {
  const Tensor &x = ctx.in(spec);
  Tensor &y = ctx.out();
  EVAL_REQUIRE(computable(x.element()) && computable(y.element()),
               "this element type has no arithmetic");
  Params p = given;
  p.element = y.element();
  // Predicates look at the operand; everything else computes in the result's type.
  const Compute compute = compute_of(y.element() == ElementType::Bool ? x.element() : y.element());
  bool known = true;
  const Tensor *in[] = {&x};
  const bool fits = with_compute(compute, [&](auto zero) {
    using C = decltype(zero);
    known = unary_block<C>(op, {nullptr, nullptr, 0}, p);
    return known && map_elements<C>(in, y, [&](const C *const *a, C *o, i64 n) {
             unary_block<C>(op, {a[0], o, n}, p);
           });
  });
  EVAL_REQUIRE(known, "the operator has no meaning for this element type");
  EVAL_REQUIRE(fits, "operand and result have different shapes");
  return {};
}

template <Unary op>
Status unary(KernelContext &ctx) {
  return run_unary(ctx, op, {});
}

Scalar number(double v) { return {false, static_cast<i64>(v), v}; }

/// One number in attribute `name` as `a`.
Status with_one(KernelContext &ctx, Unary op, std::string_view name) {
  Params p;
  p.has_a = !ctx.is_none(name);
  p.a = ctx.scalar(name);
  return run_unary(ctx, op, p);
}
Status clamp(KernelContext &ctx, std::string_view low, std::string_view high) {
  Params p;
  p.has_a = !low.empty() && !ctx.is_none(low);
  p.has_b = !high.empty() && !ctx.is_none(high);
  if (p.has_a)
    p.a = ctx.scalar(low);
  if (p.has_b)
    p.b = ctx.scalar(high);
  return run_unary(ctx, Unary::Clamp, p);
}

Status k_clamp(KernelContext &ctx) { return clamp(ctx, "min", "max"); }
Status k_clamp_max(KernelContext &ctx) { return clamp(ctx, "", "max"); }
Status k_clamp_min(KernelContext &ctx) { return clamp(ctx, "min", ""); }
Status k_hardtanh(KernelContext &ctx) { return clamp(ctx, "min_val", "max_val"); }
Status k_celu(KernelContext &ctx) { return with_one(ctx, Unary::Celu, "alpha"); }
Status k_hardshrink(KernelContext &ctx) { return with_one(ctx, Unary::HardShrink, "lambd"); }
Status k_softshrink(KernelContext &ctx) { return with_one(ctx, Unary::SoftShrink, "lambd"); }
Status k_leaky_relu(KernelContext &ctx) {
  return with_one(ctx, Unary::LeakyRelu, "negative_slope");
}
Status k_logit(KernelContext &ctx) { return with_one(ctx, Unary::Logit, "eps"); }
Status k_elu(KernelContext &ctx) {
  Params p;
  p.a = ctx.scalar("alpha");
  p.b = ctx.scalar("scale");
  p.c = ctx.scalar("input_scale");
  return run_unary(ctx, Unary::Elu, p);
}
Status k_softplus(KernelContext &ctx) {
  Params p;
  p.a = ctx.scalar("beta");
  p.b = ctx.scalar("threshold");
  return run_unary(ctx, Unary::SoftPlus, p);
}
Status k_threshold(KernelContext &ctx) {
  Params p;
  p.a = ctx.scalar("threshold");
  p.b = ctx.scalar("value");
  return run_unary(ctx, Unary::Threshold, p);
}
Status k_gelu(KernelContext &ctx) {
  return run_unary(ctx, ctx.text("approximate") == "tanh" ? Unary::GeluTanh : Unary::GeluErf, {});
}
Status k_polygamma(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.integer("n") == 0 || ctx.integer("n") == 1,
               "polygamma is evaluated for n = 0 and 1 only");
  return with_one(ctx, Unary::Polygamma, "n");
}
Status k_nan_to_num(KernelContext &ctx) {
  Params p;
  p.has_a = !ctx.is_none("nan");
  p.has_b = !ctx.is_none("posinf");
  p.a = ctx.scalar("nan");
  p.b = ctx.scalar("posinf");
  p.c = number(ctx.real_or("neginf", std::numeric_limits<double>::quiet_NaN()));
  return run_unary(ctx, Unary::NanToNum, p);
}
Status k_copy_from_source(KernelContext &ctx) { return run_unary(ctx, Unary::Copy, {}, 1); }

// Circle spells the same functions with its own fields.
Status k_circle_gelu(KernelContext &ctx) {
  return run_unary(ctx, ctx.boolean("approximate") ? Unary::GeluTanh : Unary::GeluErf, {});
}
/// What TensorFlow's converters leave; other custom operators are unknown.
Status k_custom(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.text("custom_code") == "Erf", "no custom operator but Erf is evaluated");
  return run_unary(ctx, Unary::Erf, {});
}
Status k_circle_leaky_relu(KernelContext &ctx) { return with_one(ctx, Unary::LeakyRelu, "alpha"); }
Status k_circle_elu(KernelContext &ctx) {
  Params p;
  p.a = p.b = p.c = number(1);
  return run_unary(ctx, Unary::Elu, p);
}
template <int low>
Status k_circle_relu_to_1(KernelContext &ctx) {
  Params p;
  p.has_a = p.has_b = true;
  p.a = number(low);
  p.b = number(1);
  return run_unary(ctx, Unary::Clamp, p);
}

constexpr KernelEntry kEntries[] = {
    {"circle.abs", unary<Unary::Abs>},
    {"circle.cast", unary<Unary::Copy>},
    {"circle.ceil", unary<Unary::Ceil>},
    {"circle.cos", unary<Unary::Cos>},
    {"circle.elu", k_circle_elu},
    {"circle.exp", unary<Unary::Exp>},
    {"circle.floor", unary<Unary::Floor>},
    {"circle.gelu", k_circle_gelu},
    {"circle.custom", k_custom},
    {"circle.hard_swish", unary<Unary::HardSwish>},
    {"circle.leaky_relu", k_circle_leaky_relu},
    {"circle.log", unary<Unary::Log>},
    {"circle.logical_not", unary<Unary::LogicalNot>},
    {"circle.logistic", unary<Unary::Sigmoid>},
    {"circle.neg", unary<Unary::Neg>},
    {"circle.relu", unary<Unary::Relu>},
    {"circle.relu6", unary<Unary::Relu6>},
    {"circle.relu_0_to_1", k_circle_relu_to_1<0>},
    {"circle.relu_n1_to_1", k_circle_relu_to_1<-1>},
    {"circle.round", unary<Unary::Round>},
    {"circle.rsqrt", unary<Unary::Rsqrt>},
    {"circle.sign", unary<Unary::Sign>},
    {"circle.sin", unary<Unary::Sin>},
    {"circle.sqrt", unary<Unary::Sqrt>},
    {"circle.square", unary<Unary::Square>},
    {"circle.tanh", unary<Unary::Tanh>},
    {"aten._to_copy.default", unary<Unary::Copy>},
    {"aten.to.dtype", unary<Unary::Copy>},
    {"aten.to.device", unary<Unary::Copy>},
    {"aten.to.dtype_layout", unary<Unary::Copy>},
    {"aten.to.other", unary<Unary::Copy>},
    {"aten.to.prim_dtype", unary<Unary::Copy>},
    {"aten.type_as.default", unary<Unary::Copy>},
    {"aten.copy.default", k_copy_from_source},
    {"aten.abs.default", unary<Unary::Abs>},
    {"aten.absolute.default", unary<Unary::Abs>},
    {"aten.acos.default", unary<Unary::Acos>},
    {"aten.arccos.default", unary<Unary::Acos>},
    {"aten.acosh.default", unary<Unary::Acosh>},
    {"aten.arccosh.default", unary<Unary::Acosh>},
    {"aten.angle.default", unary<Unary::Angle>},
    {"aten.asin.default", unary<Unary::Asin>},
    {"aten.arcsin.default", unary<Unary::Asin>},
    {"aten.asinh.default", unary<Unary::Asinh>},
    {"aten.arcsinh.default", unary<Unary::Asinh>},
    {"aten.atan.default", unary<Unary::Atan>},
    {"aten.arctan.default", unary<Unary::Atan>},
    {"aten.atanh.default", unary<Unary::Atanh>},
    {"aten.arctanh.default", unary<Unary::Atanh>},
    {"aten.bitwise_not.default", unary<Unary::BitNot>},
    {"aten.ceil.default", unary<Unary::Ceil>},
    {"aten.celu.default", k_celu},
    {"aten.clamp.default", k_clamp},
    {"aten.clip.default", k_clamp},
    {"aten.clamp_max.default", k_clamp_max},
    {"aten.clamp_min.default", k_clamp_min},
    {"aten.cos.default", unary<Unary::Cos>},
    {"aten.cosh.default", unary<Unary::Cosh>},
    {"aten.deg2rad.default", unary<Unary::Deg2Rad>},
    {"aten.digamma.default", unary<Unary::Digamma>},
    {"aten.elu.default", k_elu},
    {"aten.erf.default", unary<Unary::Erf>},
    {"aten.special_erf.default", unary<Unary::Erf>},
    {"aten.erfc.default", unary<Unary::Erfc>},
    {"aten.erfinv.default", unary<Unary::Erfinv>},
    {"aten.exp.default", unary<Unary::Exp>},
    {"aten.exp2.default", unary<Unary::Exp2>},
    {"aten.expm1.default", unary<Unary::Expm1>},
    {"aten.special_expm1.default", unary<Unary::Expm1>},
    {"aten.floor.default", unary<Unary::Floor>},
    {"aten.frac.default", unary<Unary::Frac>},
    {"aten.gelu.default", k_gelu},
    {"aten.hardshrink.default", k_hardshrink},
    {"aten.hardsigmoid.default", unary<Unary::HardSigmoid>},
    {"aten.hardswish.default", unary<Unary::HardSwish>},
    {"aten.hardtanh.default", k_hardtanh},
    {"aten.i0.default", unary<Unary::I0>},
    {"aten.special_i0.default", unary<Unary::I0>},
    {"aten.isfinite.default", unary<Unary::IsFinite>},
    {"aten.isinf.default", unary<Unary::IsInf>},
    {"aten.isnan.default", unary<Unary::IsNan>},
    {"aten.isneginf.default", unary<Unary::IsNegInf>},
    {"aten.isposinf.default", unary<Unary::IsPosInf>},
    {"aten.leaky_relu.default", k_leaky_relu},
    {"aten.lgamma.default", unary<Unary::Lgamma>},
    {"aten.log.default", unary<Unary::Log>},
    {"aten.log10.default", unary<Unary::Log10>},
    {"aten.log1p.default", unary<Unary::Log1p>},
    {"aten.special_log1p.default", unary<Unary::Log1p>},
    {"aten.log2.default", unary<Unary::Log2>},
    {"aten.log_sigmoid.default", unary<Unary::LogSigmoid>},
    {"aten.logical_not.default", unary<Unary::LogicalNot>},
    {"aten.logit.default", k_logit},
    {"aten.mish.default", unary<Unary::Mish>},
    {"aten.nan_to_num.default", k_nan_to_num},
    {"aten.neg.default", unary<Unary::Neg>},
    {"aten.negative.default", unary<Unary::Neg>},
    {"aten.polygamma.default", k_polygamma},
    {"aten.rad2deg.default", unary<Unary::Rad2Deg>},
    {"aten.reciprocal.default", unary<Unary::Reciprocal>},
    {"aten.relu.default", unary<Unary::Relu>},
    {"aten.relu6.default", unary<Unary::Relu6>},
    {"aten.round.default", unary<Unary::Round>},
    {"aten.rsqrt.default", unary<Unary::Rsqrt>},
    {"aten.selu.default", unary<Unary::Selu>},
    {"aten.sgn.default", unary<Unary::Sgn>},
    {"aten.sigmoid.default", unary<Unary::Sigmoid>},
    {"aten.special_expit.default", unary<Unary::Sigmoid>},
    {"aten.sign.default", unary<Unary::Sign>},
    {"aten.signbit.default", unary<Unary::SignBit>},
    {"aten.silu.default", unary<Unary::Silu>},
    {"aten.sin.default", unary<Unary::Sin>},
    {"aten.sinc.default", unary<Unary::Sinc>},
    {"aten.sinh.default", unary<Unary::Sinh>},
    {"aten.softplus.default", k_softplus},
    {"aten.softshrink.default", k_softshrink},
    {"aten.sqrt.default", unary<Unary::Sqrt>},
    {"aten.square.default", unary<Unary::Square>},
    {"aten.tan.default", unary<Unary::Tan>},
    {"aten.tanh.default", unary<Unary::Tanh>},
    {"aten.threshold.default", k_threshold},
    {"aten.trunc.default", unary<Unary::Trunc>},
};

} // namespace

std::span<const KernelEntry> unary_kernels() { return kEntries; }

} // namespace chute::eval

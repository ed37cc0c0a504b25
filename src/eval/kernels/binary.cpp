// Elementwise operators of two operands, tensors or numbers. Arithmetic runs in the result's
// compute type, comparisons in the promoted type of the operands.

#include "eval/kernels/elementwise.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

namespace chute::eval {

namespace {

enum class Binary : u8 {
  Add,
  Sub,
  RSub,
  Mul,
  Div,
  DivFloor,
  DivTrunc,
  Pow,
  Atan2,
  Fmod,
  Remainder,
  Maximum,
  Minimum,
  Fmax,
  Fmin,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Xor,
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,
  Copysign,
  Hypot,
  Heaviside,
  Gcd,
  Lcm,
  Ldexp,
  LogAddExp,
  LogAddExp2,
  NextAfter,
  XLogY,
  XLog1pY,
  Prelu,
};

bool is_predicate(Binary op) { return (op >= Binary::Eq && op <= Binary::Xor); }

template <class C>
struct Loop {
  const C *x;
  const C *y;
  C *o;
  i64 n;
  template <class F>
  bool own(F f) const {
    for (i64 i = 0; i < n; ++i)
      o[i] = static_cast<C>(f(x[i], y[i]));
    return true;
  }
  template <class F>
  bool wide(F f) const {
    for (i64 i = 0; i < n; ++i)
      o[i] = static_cast<C>(f(static_cast<double>(x[i]), static_cast<double>(y[i])));
    return true;
  }
};

template <class C>
bool compare_block(Binary op, const Loop<C> &l) {
  switch (op) {
  case Binary::Eq: return l.own([](C a, C b) { return a == b; });
  case Binary::Ne: return l.own([](C a, C b) { return a != b; });
  case Binary::Lt: return l.own([](C a, C b) { return a < b; });
  case Binary::Le: return l.own([](C a, C b) { return a <= b; });
  case Binary::Gt: return l.own([](C a, C b) { return a > b; });
  case Binary::Ge: return l.own([](C a, C b) { return a >= b; });
  case Binary::And: return l.own([](C a, C b) { return a != 0 && b != 0; });
  case Binary::Or: return l.own([](C a, C b) { return a != 0 || b != 0; });
  case Binary::Xor: return l.own([](C a, C b) { return (a != 0) != (b != 0); });
  default: return false;
  }
}

/// Integer power modulo 2^64; negative exponents as torch defines them.
template <class C>
C integer_pow(C base, C exponent) {
  if (std::is_signed_v<C> && exponent < 0) {
    if (base == 1)
      return 1;
    if (base == static_cast<C>(-1))
      return exponent % 2 == 0 ? 1 : static_cast<C>(-1);
    return 0;
  }
  u64 result = 1;
  u64 b = static_cast<u64>(base);
  for (u64 e = static_cast<u64>(exponent); e; e >>= 1) {
    if (e & 1)
      result *= b;
    b *= b;
  }
  return static_cast<C>(result);
}

template <class C>
struct IntegerDivision {
  C quotient;
  C remainder;
};
/// Toward zero, with INT64_MIN / -1 wrapping instead of trapping.
template <class C>
IntegerDivision<C> divide(C a, C b) {
  if (std::is_signed_v<C> && b == static_cast<C>(-1))
    return {static_cast<C>(0 - static_cast<u64>(a)), 0};
  return {static_cast<C>(a / b), static_cast<C>(a % b)};
}

/// Sets `error` where torch raises (an integer division by zero).
template <class C>
bool integer_block(Binary op, const Loop<C> &l, int bits, bool is_bool, std::atomic<bool> &error) {
  const auto wrap = [](u64 v) { return static_cast<C>(v); };
  const auto safe = [&](C b) {
    if (b == 0)
      error.store(true, std::memory_order_relaxed);
    return b != 0;
  };
  switch (op) {
  case Binary::Add:
    return l.own([=](C a, C b) { return wrap(static_cast<u64>(a) + static_cast<u64>(b)); });
  case Binary::Sub:
    return l.own([=](C a, C b) { return wrap(static_cast<u64>(a) - static_cast<u64>(b)); });
  case Binary::RSub:
    return l.own([=](C a, C b) { return wrap(static_cast<u64>(b) - static_cast<u64>(a)); });
  case Binary::Mul:
    return l.own([=](C a, C b) { return wrap(static_cast<u64>(a) * static_cast<u64>(b)); });
  case Binary::DivTrunc:
    return l.own([&](C a, C b) { return safe(b) ? divide(a, b).quotient : C{0}; });
  case Binary::DivFloor:
    return l.own([&](C a, C b) {
      if (!safe(b))
        return C{0};
      const auto d = divide(a, b);
      return d.remainder != 0 && (d.remainder < 0) != (b < 0) ? static_cast<C>(d.quotient - 1)
                                                              : d.quotient;
    });
  case Binary::Fmod:
    return l.own([&](C a, C b) { return safe(b) ? divide(a, b).remainder : C{0}; });
  case Binary::Remainder:
    return l.own([&](C a, C b) {
      if (!safe(b))
        return C{0};
      const C r = divide(a, b).remainder;
      return r != 0 && (r < 0) != (b < 0) ? static_cast<C>(r + b) : r;
    });
  case Binary::Pow: return l.own(integer_pow<C>);
  case Binary::Maximum:
  case Binary::Fmax: return l.own([](C a, C b) { return a < b ? b : a; });
  case Binary::Minimum:
  case Binary::Fmin: return l.own([](C a, C b) { return b < a ? b : a; });
  case Binary::BitAnd: return l.own([](C a, C b) { return a & b; });
  case Binary::BitOr: return l.own([](C a, C b) { return a | b; });
  case Binary::BitXor: return l.own([](C a, C b) { return a ^ b; });
  case Binary::Shl:
    return l.own([=](C a, C b) {
      return b < 0 || b >= static_cast<C>(bits) ? C{0} : wrap(static_cast<u64>(a) << b);
    });
  case Binary::Shr: // past the width only the sign is left
    return l.own([=](C a, C b) {
      const C last = static_cast<C>(bits - 1);
      return static_cast<C>(a >> (b < 0 || b > last ? last : b));
    });
  case Binary::Gcd:
  case Binary::Lcm:
    return l.own([=](C a, C b) {
      const u64 ua = a < 0 ? 0 - static_cast<u64>(a) : static_cast<u64>(a);
      const u64 ub = b < 0 ? 0 - static_cast<u64>(b) : static_cast<u64>(b);
      const u64 g = std::gcd(ua, ub);
      if (op == Binary::Gcd)
        return wrap(g);
      return g ? wrap(ua / g * ub) : C{0};
    });
  case Binary::Heaviside: return l.own([](C a, C b) { return a == 0 ? b : static_cast<C>(a > 0); });
  case Binary::Prelu:
    return l.own(
        [=](C a, C b) { return a > 0 ? a : wrap(static_cast<u64>(a) * static_cast<u64>(b)); });
  default: static_cast<void>(is_bool); return false;
  }
}

template <class C>
C floor_divide(C a, C b) {
  if (b == 0)
    return a / b;
  // The quotient of the exact multiple below a, so that floor never sees a rounded-up value.
  const C r = std::fmod(a, b);
  C q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0))
    q -= 1;
  if (q == 0)
    return std::copysign(C{0}, a / b);
  const C f = std::floor(q);
  return q - f > C(0.5) ? f + 1 : f;
}

template <class C>
bool float_block(Binary op, const Loop<C> &l) {
  constexpr C kNan = std::numeric_limits<C>::quiet_NaN();
  switch (op) {
  case Binary::Add: return l.own([](C a, C b) { return a + b; });
  case Binary::Sub: return l.own([](C a, C b) { return a - b; });
  case Binary::RSub: return l.own([](C a, C b) { return b - a; });
  case Binary::Mul: return l.own([](C a, C b) { return a * b; });
  case Binary::Div: return l.own([](C a, C b) { return a / b; });
  case Binary::DivTrunc: return l.own([](C a, C b) { return std::trunc(a / b); });
  case Binary::DivFloor: return l.own(floor_divide<C>);
  case Binary::Fmod: return l.own([](C a, C b) { return std::fmod(a, b); });
  case Binary::Remainder:
    return l.own([](C a, C b) {
      const C r = std::fmod(a, b);
      return r != 0 && (b < 0) != (r < 0) ? r + b : r;
    });
  case Binary::Maximum:
    return l.own([=](C a, C b) { return std::isnan(a) || std::isnan(b) ? kNan : a < b ? b : a; });
  case Binary::Minimum:
    return l.own([=](C a, C b) { return std::isnan(a) || std::isnan(b) ? kNan : b < a ? b : a; });
  case Binary::Fmax: return l.own([](C a, C b) { return std::isnan(a) || a < b ? b : a; });
  case Binary::Fmin: return l.own([](C a, C b) { return std::isnan(a) || b < a ? b : a; });
  case Binary::Pow: return l.wide([](double a, double b) { return std::pow(a, b); });
  case Binary::Atan2: return l.wide([](double a, double b) { return std::atan2(a, b); });
  case Binary::Copysign: return l.own([](C a, C b) { return std::copysign(a, b); });
  case Binary::Hypot: return l.wide([](double a, double b) { return std::hypot(a, b); });
  case Binary::Heaviside:
    return l.own([](C a, C b) { return a == 0 ? b : std::isnan(a) ? a : static_cast<C>(a > 0); });
  case Binary::Ldexp: return l.wide([](double a, double b) { return a * std::exp2(b); });
  case Binary::LogAddExp:
    return l.wide([](double a, double b) {
      const double m = std::max(a, b);
      return std::isinf(m) && a == b ? m : m + std::log1p(std::exp(-std::fabs(a - b)));
    });
  case Binary::LogAddExp2:
    return l.wide([](double a, double b) {
      const double m = std::max(a, b);
      return std::isinf(m) && a == b ? m : m + std::log1p(std::exp2(-std::fabs(a - b))) * M_LOG2E;
    });
  case Binary::NextAfter: return l.own([](C a, C b) { return std::nextafter(a, b); });
  case Binary::XLogY:
    return l.wide([](double a, double b) {
      return std::isnan(b) ? b : a == 0 ? 0.0 : a * std::log(b);
    });
  case Binary::XLog1pY:
    return l.wide([](double a, double b) {
      return std::isnan(b) ? b : a == 0 ? 0.0 : a * std::log1p(b);
    });
  case Binary::Prelu: return l.own([](C a, C b) { return a > 0 ? a : a * b; });
  default: return false;
  }
}

Status run_binary(KernelContext &ctx, Binary op, const Tensor &x, const Tensor &y) {
  Tensor &out = ctx.out();
  EVAL_REQUIRE(computable(x.element()) && computable(y.element()) && computable(out.element()),
               "this element type has no arithmetic");
  const ElementType compute =
      is_predicate(op) || out.element() == ElementType::Bool ? promote(x, y) : out.element();
  std::atomic<bool> error{false};
  bool known = true;
  const Tensor *in[] = {&x, &y};
  const bool fits = with_compute(compute_of(compute), [&](auto zero) {
    using C = decltype(zero);
    const auto block = [&](const Loop<C> &l) {
      if (is_predicate(op))
        return compare_block(op, l);
      if constexpr (std::is_integral_v<C>)
        return integer_block(op, l, ir::element_bits(out.element()),
                             out.element() == ElementType::Bool, error);
      else
        return float_block(op, l);
    };
    known = block({nullptr, nullptr, nullptr, 0});
    return known && map_elements<C>(in, out, [&](const C *const *a, C *o, i64 n) {
             block({a[0], a[1], o, n});
           });
  });
  EVAL_REQUIRE(known, "the operator has no meaning for this element type");
  EVAL_REQUIRE(fits, "the operands do not broadcast to the result");
  EVAL_REQUIRE(!error, "integer division by zero");
  return {};
}

/// alpha * t in the result's type.
Tensor scaled(const KernelContext &ctx, const Tensor &t) {
  const Scalar alpha = ctx.scalar("alpha");
  if (ctx.is_none("alpha") || alpha.real == 1 || !computable(t.element()))
    return t;
  ElementType element = ctx.type().element;
  if (!computable(element))
    return t;
  Tensor out = Tensor::allocate(element, t.shape());
  const Tensor *in[] = {&t};
  with_compute(compute_of(element), [&](auto zero) {
    using C = decltype(zero);
    const C a = as_compute<C>(alpha);
    map_elements<C>(in, out, [=](const C *const *x, C *o, i64 n) {
      for (i64 i = 0; i < n; ++i) {
        if constexpr (std::is_integral_v<C>)
          o[i] = static_cast<C>(static_cast<u64>(x[0][i]) * static_cast<u64>(a));
        else
          o[i] = x[0][i] * a;
      }
    });
  });
  return out;
}

template <Binary op>
Status tensors(KernelContext &ctx) {
  return run_binary(ctx, op, ctx.in(0), ctx.in(1));
}
template <Binary op>
Status with_scalar(KernelContext &ctx) {
  return run_binary(ctx, op, ctx.in(0), scalar_operand(ctx, "other"));
}
template <Binary op>
Status with_exponent(KernelContext &ctx) {
  return run_binary(ctx, op, ctx.in(0), scalar_operand(ctx, "exponent"));
}
template <Binary op>
Status from_scalar(KernelContext &ctx) {
  return run_binary(ctx, op, scalar_operand(ctx, "self"), ctx.in(0));
}
template <Binary op>
Status tensors_alpha(KernelContext &ctx) {
  // rsub is other - alpha * self.
  if (op == Binary::RSub)
    return run_binary(ctx, op, scaled(ctx, ctx.in(0)), ctx.in(1));
  return run_binary(ctx, op, ctx.in(0), scaled(ctx, ctx.in(1)));
}
template <Binary op>
Status scalar_alpha(KernelContext &ctx) {
  const Tensor other = scalar_operand(ctx, "other");
  if (op == Binary::RSub)
    return run_binary(ctx, op, scaled(ctx, ctx.in(0)), other);
  return run_binary(ctx, op, ctx.in(0), scaled(ctx, other));
}
Status divide_mode(KernelContext &ctx, const Tensor &other) {
  const std::string_view mode = ctx.text("rounding_mode");
  EVAL_REQUIRE(mode.empty() || mode == "floor" || mode == "trunc", "unknown rounding_mode");
  return run_binary(ctx,
                    mode.empty()      ? Binary::Div
                    : mode == "floor" ? Binary::DivFloor
                                      : Binary::DivTrunc,
                    ctx.in(0), other);
}
Status k_div_mode(KernelContext &ctx) { return divide_mode(ctx, ctx.in(1)); }
Status k_div_scalar_mode(KernelContext &ctx) {
  return divide_mode(ctx, scalar_operand(ctx, "other"));
}
Status k_prelu(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  Tensor weight = ctx.in(1);
  // One slope per channel: along dim 1.
  if (weight.rank() == 1 && x.rank() >= 2) {
    Shape shape(static_cast<size_t>(x.rank()), 1);
    shape[1] = weight.dim(0);
    weight = weight.reshaped(shape);
  } else if (weight.num_elements() == 1) {
    weight = weight.reshaped({});
  }
  return run_binary(ctx, Binary::Prelu, x, weight);
}

/// Circle: an activation may be fused behind the arithmetic.
template <Binary op>
Status fused(KernelContext &ctx) {
  if (Status s = run_binary(ctx, op, ctx.in(0), ctx.in(1)); !s)
    return s;
  return activate(ctx);
}
/// Integers divide toward zero.
Status k_circle_div(KernelContext &ctx) {
  const bool real = ir::is_float(ctx.type().element);
  if (Status s = run_binary(ctx, real ? Binary::Div : Binary::DivTrunc, ctx.in(0), ctx.in(1)); !s)
    return s;
  return activate(ctx);
}
Status k_circle_squared_difference(KernelContext &ctx) {
  if (Status s = run_binary(ctx, Binary::Sub, ctx.in(0), ctx.in(1)); !s)
    return s;
  const Tensor d = ctx.out();
  ctx.set(0, Tensor());
  return run_binary(ctx, Binary::Mul, d, d);
}

constexpr KernelEntry kEntries[] = {
    {"circle.add", fused<Binary::Add>},
    {"circle.sub", fused<Binary::Sub>},
    {"circle.mul", fused<Binary::Mul>},
    {"circle.div", k_circle_div},
    {"circle.pow", tensors<Binary::Pow>},
    {"circle.maximum", tensors<Binary::Maximum>},
    {"circle.minimum", tensors<Binary::Minimum>},
    {"circle.floor_div", tensors<Binary::DivFloor>},
    {"circle.floor_mod", tensors<Binary::Remainder>},
    {"circle.squared_difference", k_circle_squared_difference},
    {"circle.atan2", tensors<Binary::Atan2>},
    {"circle.bitwise_xor", tensors<Binary::BitXor>},
    {"circle.right_shift", tensors<Binary::Shr>},
    {"circle.equal", tensors<Binary::Eq>},
    {"circle.not_equal", tensors<Binary::Ne>},
    {"circle.less", tensors<Binary::Lt>},
    {"circle.less_equal", tensors<Binary::Le>},
    {"circle.greater", tensors<Binary::Gt>},
    {"circle.greater_equal", tensors<Binary::Ge>},
    {"circle.logical_and", tensors<Binary::And>},
    {"circle.logical_or", tensors<Binary::Or>},
    {"circle.prelu", tensors<Binary::Prelu>},
    {"aten.add.Tensor", tensors_alpha<Binary::Add>},
    {"aten.add.Scalar", scalar_alpha<Binary::Add>},
    {"aten.sub.Tensor", tensors_alpha<Binary::Sub>},
    {"aten.subtract.Tensor", tensors_alpha<Binary::Sub>},
    {"aten.sub.Scalar", scalar_alpha<Binary::Sub>},
    {"aten.rsub.Tensor", tensors_alpha<Binary::RSub>},
    {"aten.rsub.Scalar", scalar_alpha<Binary::RSub>},
    {"aten.mul.Tensor", tensors<Binary::Mul>},
    {"aten.multiply.Tensor", tensors<Binary::Mul>},
    {"aten.mul.Scalar", with_scalar<Binary::Mul>},
    {"aten.div.Tensor", tensors<Binary::Div>},
    {"aten.divide.Tensor", tensors<Binary::Div>},
    {"aten.true_divide.Tensor", tensors<Binary::Div>},
    {"aten.div.Scalar", with_scalar<Binary::Div>},
    {"aten.true_divide.Scalar", with_scalar<Binary::Div>},
    {"aten.div.Tensor_mode", k_div_mode},
    {"aten.div.Scalar_mode", k_div_scalar_mode},
    {"aten.floor_divide.default", tensors<Binary::DivFloor>},
    {"aten.floor_divide.Scalar", with_scalar<Binary::DivFloor>},
    {"aten.pow.Tensor_Tensor", tensors<Binary::Pow>},
    {"aten.float_power.Tensor_Tensor", tensors<Binary::Pow>},
    {"aten.pow.Tensor_Scalar", with_exponent<Binary::Pow>},
    {"aten.float_power.Tensor_Scalar", with_exponent<Binary::Pow>},
    {"aten.pow.Scalar", from_scalar<Binary::Pow>},
    {"aten.atan2.default", tensors<Binary::Atan2>},
    {"aten.arctan2.default", tensors<Binary::Atan2>},
    {"aten.fmod.Tensor", tensors<Binary::Fmod>},
    {"aten.fmod.Scalar", with_scalar<Binary::Fmod>},
    {"aten.remainder.Tensor", tensors<Binary::Remainder>},
    {"aten.remainder.Scalar", with_scalar<Binary::Remainder>},
    {"aten.remainder.Scalar_Tensor", from_scalar<Binary::Remainder>},
    {"aten.maximum.default", tensors<Binary::Maximum>},
    {"aten.max.other", tensors<Binary::Maximum>},
    {"aten.clamp_min.Tensor", tensors<Binary::Maximum>},
    {"aten.minimum.default", tensors<Binary::Minimum>},
    {"aten.min.other", tensors<Binary::Minimum>},
    {"aten.clamp_max.Tensor", tensors<Binary::Minimum>},
    {"aten.fmax.default", tensors<Binary::Fmax>},
    {"aten.fmin.default", tensors<Binary::Fmin>},
    {"aten.eq.Tensor", tensors<Binary::Eq>},
    {"aten.eq.Scalar", with_scalar<Binary::Eq>},
    {"aten.ne.Tensor", tensors<Binary::Ne>},
    {"aten.not_equal.Tensor", tensors<Binary::Ne>},
    {"aten.ne.Scalar", with_scalar<Binary::Ne>},
    {"aten.not_equal.Scalar", with_scalar<Binary::Ne>},
    {"aten.lt.Tensor", tensors<Binary::Lt>},
    {"aten.less.Tensor", tensors<Binary::Lt>},
    {"aten.lt.Scalar", with_scalar<Binary::Lt>},
    {"aten.less.Scalar", with_scalar<Binary::Lt>},
    {"aten.le.Tensor", tensors<Binary::Le>},
    {"aten.less_equal.Tensor", tensors<Binary::Le>},
    {"aten.le.Scalar", with_scalar<Binary::Le>},
    {"aten.less_equal.Scalar", with_scalar<Binary::Le>},
    {"aten.gt.Tensor", tensors<Binary::Gt>},
    {"aten.greater.Tensor", tensors<Binary::Gt>},
    {"aten.gt.Scalar", with_scalar<Binary::Gt>},
    {"aten.greater.Scalar", with_scalar<Binary::Gt>},
    {"aten.ge.Tensor", tensors<Binary::Ge>},
    {"aten.greater_equal.Tensor", tensors<Binary::Ge>},
    {"aten.ge.Scalar", with_scalar<Binary::Ge>},
    {"aten.greater_equal.Scalar", with_scalar<Binary::Ge>},
    {"aten.logical_and.default", tensors<Binary::And>},
    {"aten.logical_or.default", tensors<Binary::Or>},
    {"aten.logical_xor.default", tensors<Binary::Xor>},
    {"aten.bitwise_and.Tensor", tensors<Binary::BitAnd>},
    {"aten.bitwise_and.Scalar", with_scalar<Binary::BitAnd>},
    {"aten.__and__.Tensor", tensors<Binary::BitAnd>},
    {"aten.__and__.Scalar", with_scalar<Binary::BitAnd>},
    {"aten.bitwise_or.Tensor", tensors<Binary::BitOr>},
    {"aten.bitwise_or.Scalar", with_scalar<Binary::BitOr>},
    {"aten.bitwise_xor.Tensor", tensors<Binary::BitXor>},
    {"aten.bitwise_xor.Scalar", with_scalar<Binary::BitXor>},
    {"aten.__lshift__.Scalar", with_scalar<Binary::Shl>},
    {"aten.__rshift__.Scalar", with_scalar<Binary::Shr>},
    {"aten.bitwise_left_shift.Tensor", tensors<Binary::Shl>},
    {"aten.bitwise_right_shift.Tensor", tensors<Binary::Shr>},
    {"aten.copysign.Tensor", tensors<Binary::Copysign>},
    {"aten.copysign.Scalar", with_scalar<Binary::Copysign>},
    {"aten.hypot.default", tensors<Binary::Hypot>},
    {"aten.heaviside.default", tensors<Binary::Heaviside>},
    {"aten.gcd.default", tensors<Binary::Gcd>},
    {"aten.lcm.default", tensors<Binary::Lcm>},
    {"aten.ldexp.Tensor", tensors<Binary::Ldexp>},
    {"aten.logaddexp.default", tensors<Binary::LogAddExp>},
    {"aten.logaddexp2.default", tensors<Binary::LogAddExp2>},
    {"aten.nextafter.default", tensors<Binary::NextAfter>},
    {"aten.xlogy.Tensor", tensors<Binary::XLogY>},
    {"aten.xlogy.Scalar_Other", with_scalar<Binary::XLogY>},
    {"aten.xlogy.Scalar_Self", from_scalar<Binary::XLogY>},
    {"aten.special_xlog1py.default", tensors<Binary::XLog1pY>},
    {"aten.prelu.default", k_prelu},
    {"aten._prelu_kernel.default", k_prelu},
};

} // namespace

std::span<const KernelEntry> binary_kernels() { return kEntries; }

} // namespace chute::eval

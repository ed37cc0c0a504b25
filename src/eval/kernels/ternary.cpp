// Elementwise operators of three operands: where, masked_fill, clamp by tensors, lerp, addcmul,
// addcdiv.

#include "eval/kernels/elementwise.h"
#include "eval/kernels/families.h"

#include <cmath>

namespace chute::eval {

namespace {

/// out = condition ? yes : no, through the result's type.
Status select_elements(KernelContext &ctx, const Tensor &condition, const Tensor &yes,
                       const Tensor &no) {
  Tensor &out = ctx.out();
  EVAL_REQUIRE(computable(out.element()) && computable(yes.element()) && computable(no.element()) &&
                   computable(condition.element()),
               "this element type has no arithmetic");
  const Tensor *in[] = {&condition, &yes, &no};
  const bool fits = with_compute(compute_of(out.element()), [&](auto zero) {
    using C = decltype(zero);
    return map_elements<C>(in, out, [](const C *const *a, C *o, i64 n) {
      for (i64 i = 0; i < n; ++i)
        o[i] = a[0][i] != C{0} ? a[1][i] : a[2][i];
    });
  });
  EVAL_REQUIRE(fits, "the operands do not broadcast to the result");
  return {};
}

Status k_where(KernelContext &ctx) { return select_elements(ctx, ctx.in(0), ctx.in(1), ctx.in(2)); }
Status k_where_scalar(KernelContext &ctx) {
  return select_elements(ctx, ctx.in(0), scalar_operand(ctx, "self"), scalar_operand(ctx, "other"));
}
Status k_where_scalar_self(KernelContext &ctx) {
  return select_elements(ctx, ctx.in(0), scalar_operand(ctx, "self"), ctx.in(1));
}
Status k_where_scalar_other(KernelContext &ctx) {
  return select_elements(ctx, ctx.in(0), ctx.in(1), scalar_operand(ctx, "other"));
}
Status k_masked_fill(KernelContext &ctx) {
  return select_elements(ctx, ctx.in(1), ctx.in(2), ctx.in(0));
}
Status k_masked_fill_scalar(KernelContext &ctx) {
  return select_elements(ctx, ctx.in(1), scalar_operand(ctx, "value"), ctx.in(0));
}

enum class Ternary : u8 { Addcmul, Addcdiv, Lerp, Clamp };

template <class C>
void ternary_block(Ternary op, const C *const *a, C *o, i64 n, C value) {
  const auto each = [&](auto f) {
    for (i64 i = 0; i < n; ++i)
      o[i] = f(a[0][i], a[1][i], a[2][i]);
  };
  const auto times = [](C x, C y) {
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<u64>(x) * static_cast<u64>(y));
    else
      return x * y;
  };
  switch (op) {
  case Ternary::Addcmul:
    return each([&](C x, C y, C z) { return static_cast<C>(x + times(times(value, y), z)); });
  case Ternary::Addcdiv:
    return each([&](C x, C y, C z) {
      return static_cast<C>(z == C{0} && std::is_integral_v<C> ? x : x + value * (y / z));
    });
  case Ternary::Lerp: // from the nearer end, so that weights 0 and 1 are exact
    return each([&](C x, C y, C w) {
      return static_cast<C>(w < C(1) / C(2) ? x + times(w, y - x) : y - times(y - x, 1 - w));
    });
  case Ternary::Clamp:
    return each([](C x, C low, C high) {
      if (x != x || low != low)
        return static_cast<C>(x + low);
      if (high != high)
        return high;
      const C v = x < low ? low : x;
      return high < v ? high : v;
    });
  }
}

Status run_ternary(KernelContext &ctx, Ternary op, const Tensor &x, const Tensor &y,
                   const Tensor &z) {
  Tensor &out = ctx.out();
  for (const Tensor *t : {&x, &y, &z, static_cast<const Tensor *>(&out)})
    EVAL_REQUIRE(computable(t->element()), "this element type has no arithmetic");
  EVAL_REQUIRE(op != Ternary::Addcdiv || ir::is_float(out.element()),
               "addcdiv of integers is not defined");
  Scalar value;
  value.integer = 1;
  value.real = 1;
  if (!ctx.is_none("value"))
    value = ctx.scalar("value");
  const Tensor *in[] = {&x, &y, &z};
  const bool fits = with_compute(compute_of(out.element()), [&](auto zero) {
    using C = decltype(zero);
    const C v = as_compute<C>(value);
    return map_elements<C>(
        in, out, [=](const C *const *a, C *o, i64 n) { ternary_block<C>(op, a, o, n, v); });
  });
  EVAL_REQUIRE(fits, "the operands do not broadcast to the result");
  return {};
}

template <Ternary op>
Status tensors(KernelContext &ctx) {
  return run_ternary(ctx, op, ctx.in(0), ctx.in(1), ctx.in(2));
}
Status k_lerp_scalar(KernelContext &ctx) {
  return run_ternary(ctx, Ternary::Lerp, ctx.in(0), ctx.in(1), scalar_operand(ctx, "weight"));
}
Status k_clamp(KernelContext &ctx) {
  const Tensor *low = ctx.maybe(1);
  const Tensor *high = ctx.maybe(2);
  const bool real = ir::is_float(ctx.type().element);
  EVAL_REQUIRE(real || (low && high) || compute_of(ctx.type().element) == Compute::I64,
               "clamp of this element type needs both bounds");
  const double inf = HUGE_VAL;
  const Tensor least = real ? Tensor::scalar(ElementType::F64, -inf)
                            : Tensor::scalar_int(ElementType::I64, INT64_MIN);
  const Tensor most = real ? Tensor::scalar(ElementType::F64, inf)
                           : Tensor::scalar_int(ElementType::I64, INT64_MAX);
  return run_ternary(ctx, Ternary::Clamp, ctx.in(0), low ? *low : least, high ? *high : most);
}

constexpr KernelEntry kEntries[] = {
    {"aten.where.self", k_where},
    {"circle.select", k_where},
    {"circle.select_v2", k_where},
    {"aten.where.Scalar", k_where_scalar},
    {"aten.where.ScalarSelf", k_where_scalar_self},
    {"aten.where.ScalarOther", k_where_scalar_other},
    {"aten.masked_fill.Tensor", k_masked_fill},
    {"aten.masked_fill.Scalar", k_masked_fill_scalar},
    {"aten.addcmul.default", tensors<Ternary::Addcmul>},
    {"aten.addcdiv.default", tensors<Ternary::Addcdiv>},
    {"aten.lerp.Tensor", tensors<Ternary::Lerp>},
    {"aten.lerp.Scalar", k_lerp_scalar},
    {"aten.clamp.Tensor", k_clamp},
    {"aten.clip.Tensor", k_clamp},
};

} // namespace

std::span<const KernelEntry> ternary_kernels() { return kEntries; }

} // namespace chute::eval

#include "ptq/scheme.h"

#include "quant/params.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace chute::ptq {

using ir::ElementType;

namespace {

constexpr Scheme kSchemes[] = {
    {"int8", ElementType::I8, false, ElementType::I8, true, ElementType::I8, ElementType::I32},
    {"uint8", ElementType::U8, false, ElementType::U8, false, ElementType::U8, ElementType::I32,
     true},
    {"int16x8", ElementType::I16, true, ElementType::I8, true, ElementType::I16, ElementType::I64},
    {"w8a16", ElementType::I16, true, ElementType::U8, false, ElementType::I16, ElementType::I64},
    {"w4a16", ElementType::I16, true, ElementType::U4, false, ElementType::U8, ElementType::I64},
};

} // namespace

using quant::per_tensor;

std::span<const Scheme> all_schemes() { return kSchemes; }

const Scheme *find_scheme(std::string_view name) {
  for (const Scheme &s : kSchemes)
    if (s.name == name)
      return &s;
  return nullptr;
}

void Range::include(Range r) {
  if (r.empty())
    return;
  if (empty())
    *this = r;
  lo = std::min(lo, r.lo);
  hi = std::max(hi, r.hi);
}

const ir::Quantization *parameters(ir::Context &ctx, Range r, ElementType element, bool symmetric) {
  const quant::Range stored = quant::range_of(element).value_or(quant::Range{});
  const float lo = std::min(r.lo, 0.0f);
  const float hi = std::max(r.hi, 0.0f);
  if (r.empty() || lo == hi)
    return per_tensor(ctx, 1.0f, symmetric || stored.min < 0 ? 0 : stored.min);
  // The smallest normal number, so that the reciprocal is finite too.
  constexpr float kLeast = 1.17549435e-38f;
  if (symmetric) {
    const float scale = std::max(-lo, hi) / static_cast<float>(stored.max);
    return per_tensor(ctx, std::max(scale, kLeast), 0);
  }
  const double steps = static_cast<double>(stored.max - stored.min);
  const float scale = std::max(
      static_cast<float>((static_cast<double>(hi) - static_cast<double>(lo)) / steps), kLeast);
  const double zero = std::round(static_cast<double>(stored.min) -
                                 static_cast<double>(lo) / static_cast<double>(scale));
  return per_tensor(ctx, scale, std::clamp(static_cast<i64>(zero), stored.min, stored.max));
}

const ir::Quantization *fixed_parameters(ir::Context &ctx, std::string_view op,
                                         const Scheme &scheme) {
  const bool unit = op == "circle.logistic" || op == "circle.softmax";
  const bool sign = op == "circle.tanh" || op == "circle.l2_normalization";
  const bool wide = ir::element_bits(scheme.activation) == 16;
  if (wide)
    return unit || sign ? per_tensor(ctx, 1.0f / 32768, 0) : nullptr;
  const i64 least = quant::range_of(scheme.activation)->min;
  if (unit)
    return per_tensor(ctx, 1.0f / 256, least);
  if (sign)
    return per_tensor(ctx, 1.0f / 128, least + 128);
  if (op == "circle.log_softmax")
    return per_tensor(ctx, 16.0f / 256, least + 255);
  return nullptr;
}

} // namespace chute::ptq

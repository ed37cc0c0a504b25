#include "quant/mx.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace chute::quant {

namespace {

using ir::ElementType;

constexpr std::array kFormats{
    MxFormat{"int8", 0, 8, 0, 1.984375f, ElementType::MXINT8},
    MxFormat{"fp4", 2, 3, 2, 6.0f, ElementType::MXFP4},
    MxFormat{"fp4_e2m1", 2, 3, 2, 6.0f, ElementType::MXFP4},
    MxFormat{"fp6_e3m2", 3, 4, 4, 28.0f, ElementType::None},
    MxFormat{"fp6_e2m3", 2, 5, 2, 7.5f, ElementType::None},
    MxFormat{"fp8_e4m3", 4, 5, 8, 448.0f, ElementType::None},
    MxFormat{"fp8_e5m2", 5, 4, 15, 57344.0f, ElementType::None},
};
constexpr float kScaleExponent = 127.0f;

/// One element, already divided by its block's scale.
float round_element(float x, const MxFormat &f) {
  if (!std::isfinite(x))
    return x;
  float exponent = 0;
  if (f.exponent_bits) {
    const auto lowest = static_cast<float>(2 - (1 << (f.exponent_bits - 1)));
    exponent = std::max(std::floor(std::log2(x == 0 ? 1.0f : std::abs(x))), lowest);
  }
  const int shift = f.mantissa_bits - 2 - static_cast<int>(exponent);
  const float steps = std::floor(std::ldexp(std::abs(x), shift) + 0.5f);
  return std::copysign(std::min(std::ldexp(steps, -shift), f.largest), x);
}

} // namespace

std::optional<MxFormat> mx_format(std::string_view name) {
  if (name.starts_with("mx"))
    name.remove_prefix(2);
  for (const MxFormat &f : kFormats)
    if (f.name == name)
      return f;
  return std::nullopt;
}

void mx_round(std::span<float> values, std::span<const i64> shape, int axis,
              const MxFormat &format) {
  size_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d)
    inner *= static_cast<size_t>(shape[d]);
  const auto extent = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
  if (values.empty())
    return;
  for (size_t line = 0; line < values.size() / extent; ++line) {
    float *first = values.data() + line / inner * extent * inner + line % inner;
    for (size_t begin = 0; begin < extent; begin += kMxBlock) {
      const size_t n = std::min<size_t>(kMxBlock, extent - begin);
      float *block = first + begin * inner;
      float largest = 0;
      bool nan = false;
      for (size_t i = 0; i < n; ++i) {
        nan = nan || std::isnan(block[i * inner]);
        largest = std::max(largest, std::abs(block[i * inner]));
      }
      const float magnitude = largest == 0 ? std::numeric_limits<float>::min() : largest;
      const float exponent =
          std::floor(std::log2(magnitude)) - static_cast<float>(format.largest_exponent);
      const bool lost = nan || !(exponent <= kScaleExponent);
      const int scale = lost ? 0 : static_cast<int>(std::max(exponent, -kScaleExponent));
      for (size_t i = 0; i < n; ++i) {
        float &x = block[i * inner];
        x = lost ? std::numeric_limits<float>::quiet_NaN()
                 : std::ldexp(round_element(std::ldexp(x, -scale), format), scale);
      }
    }
  }
}

} // namespace chute::quant

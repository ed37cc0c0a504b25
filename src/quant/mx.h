#pragma once

#include "ir/element_type.h"
#include "support/ints.h"

#include <optional>
#include <span>
#include <string_view>

/// OCP microscaling formats: blocks of 32 elements along one dimension share a power of two.
namespace chute::quant {

inline constexpr i32 kMxBlock = 32;

struct MxFormat {
  std::string_view name;
  int exponent_bits = 0; ///< 0: fixed point
  int mantissa_bits = 0; ///< sign and implicit bit included
  int largest_exponent = 0;
  float largest = 0;
  ir::ElementType storage = ir::ElementType::None; ///< None where Circle has no element type
};

/// "int8", "fp4" (or "fp4_e2m1"), "fp6_e3m2", "fp6_e2m3", "fp8_e4m3", "fp8_e5m2", with or without a
/// leading "mx"; nullopt for others.
std::optional<MxFormat> mx_format(std::string_view name);

/// Rounds `values` (row-major, `shape`) to the format along `axis`, in place: each block is divided
/// by 2^(floor(log2(largest magnitude)) - largest_exponent), its elements are rounded half away
/// from zero to the format's own exponent and mantissa, saturated, and multiplied back. The last
/// block of a line may be shorter. The scale is clamped at 2^-127; beyond 2^127 the block is NaN.
void mx_round(std::span<float> values, std::span<const i64> shape, int axis,
              const MxFormat &format);

} // namespace chute::quant

#pragma once

#include "support/ints.h"

#include <bit>
#include <cmath>
#include <limits>

namespace chute {

/// Conversions between f32 and the narrow float formats, round to nearest even. Checked against
/// every code of each format in float_formats_test.cpp.

inline float f16_to_f32(u16 bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
inline u16 f32_to_f16(float v) { return std::bit_cast<u16>(static_cast<_Float16>(v)); }

inline float bf16_to_f32(u16 bits) { return std::bit_cast<float>(static_cast<u32>(bits) << 16); }
inline u16 f32_to_bf16(float v) {
  const u32 bits = std::bit_cast<u32>(v);
  if (std::isnan(v))
    return static_cast<u16>((bits >> 16) | 0x40); // keep it a quiet NaN
  return static_cast<u16>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// An 8-bit float format (OCP and the "fnuz" variants).
struct Float8Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity; ///< e5m2 only
  bool fnuz;         ///< no negative zero; 0x80 is the one NaN
};
inline constexpr Float8Format kF8E4M3FN{4, 3, 7, false, false};
inline constexpr Float8Format kF8E5M2{5, 2, 15, true, false};
inline constexpr Float8Format kF8E4M3FNUZ{4, 3, 8, false, true};
inline constexpr Float8Format kF8E5M2FNUZ{5, 2, 16, false, true};

inline float f8_to_f32(u8 code, const Float8Format &f) {
  const bool negative = code & 0x80;
  const int exponent = code >> f.mantissa_bits & ((1 << f.exponent_bits) - 1);
  const int mantissa = code & ((1 << f.mantissa_bits) - 1);
  if (f.fnuz && code == 0x80)
    return std::numeric_limits<float>::quiet_NaN();
  if (!f.fnuz) {
    const bool top = exponent == (1 << f.exponent_bits) - 1;
    if (f.has_infinity && top)
      return mantissa
                 ? std::numeric_limits<float>::quiet_NaN()
                 : std::copysign(std::numeric_limits<float>::infinity(), negative ? -1.f : 1.f);
    if (!f.has_infinity && top && mantissa == (1 << f.mantissa_bits) - 1)
      return std::numeric_limits<float>::quiet_NaN();
  }
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)),
                                 exponent - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

/// Values beyond the largest finite one, as PyTorch 2.13 converts them: infinity in e5m2, the
/// largest finite value in e4m3fn (earlier releases gave NaN), NaN in the fnuz formats.
inline u8 f32_to_f8(float v, const Float8Format &f) {
  const u8 sign = std::signbit(v) ? 0x80 : 0;
  const auto nan = static_cast<u8>(f.fnuz ? 0x80 : sign | 0x7F);
  if (std::isnan(v))
    return nan;
  const int m = f.mantissa_bits;
  u8 overflow = nan;
  if (f.has_infinity)
    overflow = static_cast<u8>(sign | (((1 << f.exponent_bits) - 1) << m));
  else if (!f.fnuz)
    overflow = static_cast<u8>(sign | 0x7E);
  if (std::isinf(v))
    return overflow;
  int exponent = 0;
  const float magnitude = std::fabs(v);
  std::frexp(magnitude, &exponent); // magnitude = x * 2^exponent, x in [0.5, 1)
  int scale = exponent - 1;         // exponent of the leading bit
  if (magnitude == 0.f || scale < 1 - f.bias)
    scale = 1 - f.bias; // subnormal: fixed quantum
  int significand = static_cast<int>(std::nearbyint(std::ldexp(magnitude, m - scale)));
  if (significand == 0)
    return f.fnuz ? 0 : sign;
  if (significand == 2 << m) { // rounded up to the next power of two
    significand >>= 1;
    ++scale;
  }
  const bool subnormal = significand < 1 << m;
  const int field = subnormal ? 0 : scale + f.bias;
  const int top = (1 << f.exponent_bits) - 1;
  if (field > top || (f.has_infinity && field == top))
    return overflow;
  const int code = (field << m) | (subnormal ? significand : significand - (1 << m));
  if (!f.fnuz && !f.has_infinity && code == 0x7F)
    return overflow;
  return static_cast<u8>(sign | code);
}

/// e8m0: a power of two, code 255 is NaN.
inline float f8e8m0_to_f32(u8 code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, code - 127);
}
/// The sign is dropped. Rounding works on the bits, as in PyTorch: the kept significand is the
/// leading 1 alone, which is odd, so a tie goes up; below the normal range of f32 it goes to zero
/// (code 0, which means 2^-127). What rounds beyond 2^127 is NaN.
inline u8 f32_to_f8e8m0(float v) {
  const u32 bits = std::bit_cast<u32>(v);
  const u32 exponent = bits >> 23 & 0xFF;
  if (exponent == 0xFF)
    return 255;
  const u32 fraction = bits & 0x7FFFFF;
  const bool up = fraction > 0x400000 || (fraction == 0x400000 && exponent > 0);
  return static_cast<u8>(exponent + up);
}

} // namespace chute

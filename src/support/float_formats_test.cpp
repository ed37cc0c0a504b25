#include "support/float_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace chute {
namespace {

/// The value of a code by the textbook formula, in double (exact for every format here).
double textbook(u32 code, int exponent_bits, int mantissa_bits, int bias) {
  const u32 sign = code >> (exponent_bits + mantissa_bits) & 1;
  const u32 exponent = code >> mantissa_bits & ((1u << exponent_bits) - 1);
  const double fraction = static_cast<double>(code & ((1u << mantissa_bits) - 1)) /
                          static_cast<double>(1u << mantissa_bits);
  const double magnitude = exponent == 0
                               ? fraction * std::pow(2.0, 1 - bias)
                               : (1 + fraction) * std::pow(2.0, static_cast<int>(exponent) - bias);
  return sign ? -magnitude : magnitude;
}

bool same(double a, double b) {
  return std::bit_cast<u64>(a) == std::bit_cast<u64>(b); // tells -0 from 0
}

/// Every float between, at and beside the neighbours of a format must go to the nearer one, to the
/// even code of two. `values` are the non-negative finite values in order of code.
void check_rounding(const std::vector<float> &values, const std::function<u32(float)> &encode) {
  for (u32 code = 0; code + 1 < values.size(); ++code) {
    const float low = values[code], high = values[code + 1];
    const auto middle =
        static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    EXPECT_EQ(encode(low), code);
    EXPECT_EQ(encode(high), code + 1);
    EXPECT_EQ(encode(middle), code % 2 ? code + 1 : code) << low << " " << high;
    EXPECT_EQ(encode(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(encode(std::nextafter(middle, high)), code + 1);
  }
}

TEST(FloatFormats, EveryF16Code) {
  std::vector<float> values;
  for (u32 code = 0; code < 0x10000; ++code) {
    const float v = f16_to_f32(static_cast<u16>(code));
    if ((code & 0x7C00) == 0x7C00) {
      if (code & 0x3FF) {
        EXPECT_TRUE(std::isnan(v));
        EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(v))));
      } else {
        EXPECT_EQ(v, code & 0x8000 ? -INFINITY : INFINITY);
        EXPECT_EQ(f32_to_f16(v), code);
      }
      continue;
    }
    EXPECT_TRUE(same(v, textbook(code, 5, 10, 15))) << code;
    EXPECT_EQ(f32_to_f16(v), code);
    if (code < 0x8000)
      values.push_back(v);
  }
  check_rounding(values, [](float v) { return f32_to_f16(v); });
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
}

TEST(FloatFormats, EveryBf16Code) {
  std::vector<float> values;
  for (u32 code = 0; code < 0x10000; ++code) {
    const float v = bf16_to_f32(static_cast<u16>(code));
    if ((code & 0x7F80) == 0x7F80) {
      if (code & 0x7F)
        EXPECT_TRUE(std::isnan(v) && std::isnan(bf16_to_f32(f32_to_bf16(v))));
      else
        EXPECT_EQ(f32_to_bf16(v), code);
      continue;
    }
    EXPECT_TRUE(same(v, textbook(code, 8, 7, 127))) << code;
    EXPECT_EQ(f32_to_bf16(v), code);
    if (code < 0x8000)
      values.push_back(v);
  }
  check_rounding(values, [](float v) { return f32_to_bf16(v); });
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  // A NaN whose payload sits in the bits that are cut off stays a NaN.
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001u)))));
}

struct Case {
  const char *name;
  Float8Format format;
  std::vector<int> nan_codes;
  std::vector<int> infinity_codes;
  float largest;
  int overflow_code; ///< of what lies beyond `largest`
};

TEST(FloatFormats, EveryF8Code) {
  const std::vector<Case> cases{
      {"e4m3fn", kF8E4M3FN, {0x7F, 0xFF}, {}, 448.0f, 0x7E},
      {"e5m2", kF8E5M2, {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}, {0x7C, 0xFC}, 57344.0f, 0x7C},
      {"e4m3fnuz", kF8E4M3FNUZ, {0x80}, {}, 240.0f, 0x80},
      {"e5m2fnuz", kF8E5M2FNUZ, {0x80}, {}, 57344.0f, 0x80},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    const auto has = [](const std::vector<int> &v, int x) {
      return std::find(v.begin(), v.end(), x) != v.end();
    };
    std::vector<float> values;
    for (int code = 0; code < 256; ++code) {
      const float v = f8_to_f32(static_cast<u8>(code), c.format);
      if (has(c.nan_codes, code)) {
        EXPECT_TRUE(std::isnan(v)) << code;
        EXPECT_TRUE(has(c.nan_codes, f32_to_f8(v, c.format)));
        continue;
      }
      if (has(c.infinity_codes, code)) {
        EXPECT_EQ(v, code & 0x80 ? -INFINITY : INFINITY);
      } else {
        EXPECT_TRUE(same(v, textbook(static_cast<u32>(code), c.format.exponent_bits,
                                     c.format.mantissa_bits, c.format.bias)))
            << code;
        if (code < 0x80)
          values.push_back(v);
      }
      EXPECT_EQ(f32_to_f8(v, c.format), code);
    }
    EXPECT_EQ(values.back(), c.largest);
    check_rounding(values, [&](float v) { return f32_to_f8(v, c.format); });
    for (float beyond : {c.largest * 1.5f, 1e30f, INFINITY}) {
      EXPECT_EQ(f32_to_f8(beyond, c.format), c.overflow_code);
      EXPECT_EQ(f32_to_f8(-beyond, c.format), c.format.fnuz ? 0x80 : c.overflow_code | 0x80);
    }
    EXPECT_EQ(f32_to_f8(-0.0f, c.format), c.format.fnuz ? 0 : 0x80);
    EXPECT_EQ(f32_to_f8(-1e-30f, c.format), c.format.fnuz ? 0 : 0x80);
  }
}

TEST(FloatFormats, EveryE8m0Code) {
  for (int code = 0; code < 255; ++code) {
    const float v = f8e8m0_to_f32(static_cast<u8>(code));
    EXPECT_EQ(static_cast<double>(v), std::pow(2.0, code - 127));
    if (code > 0) { // 2^-127 itself is a tie of zero and 2^-126 in the bits of f32
      EXPECT_EQ(f32_to_f8e8m0(v), code);
      EXPECT_EQ(f32_to_f8e8m0(-v), code);
      EXPECT_EQ(f32_to_f8e8m0(std::nextafter(v * 1.5f, 0.0f)), code);
      EXPECT_EQ(f32_to_f8e8m0(v * 1.5f), code + 1);
    }
  }
  EXPECT_TRUE(std::isnan(f8e8m0_to_f32(255)));
  EXPECT_EQ(f32_to_f8e8m0(0.0f), 0);
  EXPECT_EQ(f32_to_f8e8m0(NAN), 255);
  EXPECT_EQ(f32_to_f8e8m0(INFINITY), 255);
}

} // namespace
} // namespace chute

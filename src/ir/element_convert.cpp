#include "ir/element_convert.h"

#include "support/float_formats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace chute::ir {

namespace {

template <class T>
T load(const std::byte *from) {
  T v;
  std::memcpy(&v, from, sizeof(T));
  return v;
}
template <class T>
void store(std::byte *to, T v) {
  std::memcpy(to, &v, sizeof(T));
}

/// Float to integer as x86 and torch do it: out of range wraps through 64 bits instead of being
/// undefined.
i64 truncate(double v) {
  if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0))
    return std::numeric_limits<i64>::min();
  return static_cast<i64>(v);
}

/// MXFP4 (e2m1), without the block's scale: values of the eight positive codes.
constexpr std::array<double, 8> kFp4{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

u8 to_fp4(double v) {
  const u8 sign = std::signbit(v) ? 8 : 0;
  const double magnitude = std::fabs(v);
  u8 code =
      0; // to the nearest, ties to the even code; beyond 6 saturates (the format has no infinity)
  for (u8 next = 1; next < 8; ++next) {
    const double middle = (kFp4[next - 1u] + kFp4[next]) / 2;
    if (magnitude > middle || (magnitude == middle && next % 2 == 0))
      code = next;
  }
  return sign | code;
}

} // namespace

i64 load_element_int(ElementType t, const std::byte *from) {
  switch (t) {
  case ElementType::Bool: return load<u8>(from) != 0;
  case ElementType::U8:
  case ElementType::U4: return load<u8>(from);
  case ElementType::I8:
  case ElementType::I4: return load<i8>(from);
  case ElementType::U16: return load<u16>(from);
  case ElementType::I16: return load<i16>(from);
  case ElementType::U32: return load<u32>(from);
  case ElementType::I32: return load<i32>(from);
  case ElementType::U64: return static_cast<i64>(load<u64>(from));
  case ElementType::I64:
  case ElementType::I48: return load<i64>(from);
  default: return truncate(load_element(t, from));
  }
}

double load_element(ElementType t, const std::byte *from) {
  switch (t) {
  case ElementType::F32: return static_cast<double>(load<float>(from));
  case ElementType::F64: return load<double>(from);
  case ElementType::F16: return static_cast<double>(f16_to_f32(load<u16>(from)));
  case ElementType::BF16: return static_cast<double>(bf16_to_f32(load<u16>(from)));
  case ElementType::F8E4M3FN: return static_cast<double>(f8_to_f32(load<u8>(from), kF8E4M3FN));
  case ElementType::F8E5M2: return static_cast<double>(f8_to_f32(load<u8>(from), kF8E5M2));
  case ElementType::F8E4M3FNUZ: return static_cast<double>(f8_to_f32(load<u8>(from), kF8E4M3FNUZ));
  case ElementType::F8E5M2FNUZ: return static_cast<double>(f8_to_f32(load<u8>(from), kF8E5M2FNUZ));
  case ElementType::F8E8M0FNU: return static_cast<double>(f8e8m0_to_f32(load<u8>(from)));
  case ElementType::C32: return static_cast<double>(f16_to_f32(load<u16>(from)));
  case ElementType::C64: return static_cast<double>(load<float>(from));
  case ElementType::C128: return load<double>(from);
  case ElementType::U64: return static_cast<double>(load<u64>(from));
  case ElementType::MXINT8: return load<i8>(from) * 0x1p-6;
  case ElementType::MXFP4: {
    const auto code = load<u8>(from);
    return code & 8 ? -kFp4[code & 7] : kFp4[code & 7];
  }
  default: // what is neither has no numbers: text, handles, opaque blocks
    return is_integer(t) || t == ElementType::Bool ? static_cast<double>(load_element_int(t, from))
                                                   : 0.0;
  }
}

void store_element_int(ElementType t, i64 value, std::byte *to) {
  switch (t) {
  case ElementType::Bool: return store<u8>(to, value != 0);
  case ElementType::U8:
  case ElementType::I8:
  case ElementType::U4:
  case ElementType::I4: return store<u8>(to, static_cast<u8>(value));
  case ElementType::U16:
  case ElementType::I16: return store<u16>(to, static_cast<u16>(value));
  case ElementType::U32:
  case ElementType::I32: return store<u32>(to, static_cast<u32>(value));
  case ElementType::U64:
  case ElementType::I64:
  case ElementType::I48: return store<i64>(to, value);
  default: return store_element(t, static_cast<double>(value), to);
  }
}

void store_element(ElementType t, double value, std::byte *to) {
  const auto f = static_cast<float>(value);
  switch (t) {
  case ElementType::F32: return store<float>(to, f);
  case ElementType::F64: return store<double>(to, value);
  case ElementType::F16: return store<u16>(to, f32_to_f16(f));
  case ElementType::BF16: return store<u16>(to, f32_to_bf16(f));
  case ElementType::F8E4M3FN: return store<u8>(to, f32_to_f8(f, kF8E4M3FN));
  case ElementType::F8E5M2: return store<u8>(to, f32_to_f8(f, kF8E5M2));
  case ElementType::F8E4M3FNUZ: return store<u8>(to, f32_to_f8(f, kF8E4M3FNUZ));
  case ElementType::F8E5M2FNUZ: return store<u8>(to, f32_to_f8(f, kF8E5M2FNUZ));
  case ElementType::F8E8M0FNU: return store<u8>(to, f32_to_f8e8m0(f));
  case ElementType::C32: store<u16>(to, f32_to_f16(f)); return store<u16>(to + 2, 0);
  case ElementType::C64: store<float>(to, f); return store<float>(to + 4, 0.0f);
  case ElementType::C128: store<double>(to, value); return store<double>(to + 8, 0.0);
  case ElementType::Bool: return store<u8>(to, value != 0.0);
  case ElementType::U64:
    return store<u64>(to, value >= 9223372036854775808.0 ? static_cast<u64>(value)
                                                         : static_cast<u64>(truncate(value)));
  case ElementType::MXINT8: {
    const double scaled = std::nearbyint(value * 0x1p6);
    return store<i8>(to,
                     static_cast<i8>(std::isnan(scaled) ? 0 : std::clamp(scaled, -128.0, 127.0)));
  }
  case ElementType::MXFP4: return store<u8>(to, to_fp4(value));
  default:
    if (is_integer(t))
      store_element_int(t, truncate(value), to);
  }
}

} // namespace chute::ir

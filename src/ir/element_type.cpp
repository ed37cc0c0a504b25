#include "ir/element_type.h"

#include <array>

namespace chute::ir {

namespace {

enum class Class : u8 { Other, Bool, Unsigned, Signed, Float, Complex };

struct Info {
  std::string_view name;
  u8 bits;
  u8 bytes;
  Class kind;
};

// In the order of the enum.
constexpr std::array<Info, kNumElementTypes> kInfo{{
    {"none", 0, 0, Class::Other},       {"bool", 8, 1, Class::Bool},
    {"u8", 8, 1, Class::Unsigned},      {"i8", 8, 1, Class::Signed},
    {"u16", 16, 2, Class::Unsigned},    {"i16", 16, 2, Class::Signed},
    {"u32", 32, 4, Class::Unsigned},    {"i32", 32, 4, Class::Signed},
    {"u64", 64, 8, Class::Unsigned},    {"i64", 64, 8, Class::Signed},
    {"f16", 16, 2, Class::Float},       {"bf16", 16, 2, Class::Float},
    {"f32", 32, 4, Class::Float},       {"f64", 64, 8, Class::Float},
    {"c32", 32, 4, Class::Complex},     {"c64", 64, 8, Class::Complex},
    {"c128", 128, 16, Class::Complex},  {"f8e4m3fn", 8, 1, Class::Float},
    {"f8e5m2", 8, 1, Class::Float},     {"f8e4m3fnuz", 8, 1, Class::Float},
    {"f8e5m2fnuz", 8, 1, Class::Float}, {"f8e8m0fnu", 8, 1, Class::Float},
    {"u4", 4, 1, Class::Unsigned},      {"i4", 4, 1, Class::Signed},
    {"i48", 48, 8, Class::Signed},      {"mxint8", 8, 1, Class::Other},
    {"mxfp4", 4, 1, Class::Other},      {"string", 0, 0, Class::Other},
    {"resource", 0, 0, Class::Other},   {"variant", 0, 0, Class::Other},
    {"ggml_q4_0", 0, 0, Class::Other},  {"ggml_q4_1", 0, 0, Class::Other},
    {"ggml_q8_0", 0, 0, Class::Other},  {"ggml_q8_1", 0, 0, Class::Other},
}};

const Info &info(ElementType t) { return kInfo[static_cast<size_t>(t)]; }

} // namespace

std::string_view element_type_name(ElementType t) { return info(t).name; }

std::optional<ElementType> parse_element_type(std::string_view name) {
  for (int i = 0; i < kNumElementTypes; ++i)
    if (kInfo[static_cast<size_t>(i)].name == name)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

int element_bits(ElementType t) { return info(t).bits; }
int element_bytes(ElementType t) { return info(t).bytes; }
bool is_float(ElementType t) { return info(t).kind == Class::Float; }
bool is_integer(ElementType t) {
  return info(t).kind == Class::Signed || info(t).kind == Class::Unsigned;
}
bool is_signed(ElementType t) { return info(t).kind == Class::Signed; }
bool is_complex(ElementType t) { return info(t).kind == Class::Complex; }

} // namespace chute::ir

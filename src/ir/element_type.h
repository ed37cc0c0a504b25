#pragma once

#include "support/ints.h"

#include <optional>
#include <string_view>

namespace chute::ir {

/// Element types of tensors: every one that `.pt2`, Circle or TOSA can hold. The text form uses the
/// names of `element_type_name` ("f32", "i8", "u4", "f8e4m3fn", "mxint8").
enum class ElementType : u8 {
  None, // absent or unknown
  Bool,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F16,
  BF16,
  F32,
  F64,
  C32,
  C64,
  C128,
  F8E4M3FN,
  F8E5M2,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  F8E8M0FNU,
  U4,
  I4,
  I48,
  MXINT8,
  MXFP4,
  String,
  Resource, // handles of variables and tables (Circle)
  Variant,
  GGML_Q4_0, // blocks of 32 elements with their scales: carried, never computed with
  GGML_Q4_1,
  GGML_Q8_0,
  GGML_Q8_1,
};
inline constexpr int kNumElementTypes = static_cast<int>(ElementType::GGML_Q8_1) + 1;

std::string_view element_type_name(ElementType t);
std::optional<ElementType> parse_element_type(std::string_view name);

/// Bits of one element as stored (4 for U4/I4 packed, 48 for I48); 0 for None, String and whatever
/// has no bytes of its own per element (handles, GGML blocks). MX types
/// give the bits of an element without its block's shared scale.
int element_bits(ElementType t);
/// Bytes of one unpacked element: sub-byte types take one byte each in a Constant's buffer.
/// Packing happens on write only.
int element_bytes(ElementType t);

bool is_float(ElementType t);   // F16 BF16 F32 F64 and fp8
bool is_integer(ElementType t); // signed and unsigned integers, Bool not included
bool is_signed(ElementType t);  // of integers
bool is_complex(ElementType t);

} // namespace chute::ir

#include "circle/element.h"

#include "schema/circle_generated.h"

namespace chute::circle {

namespace {

using ir::ElementType;

struct Pair {
  ElementType element;
  ::circle::TensorType wire;
};

constexpr Pair kPairs[] = {
    {ElementType::F32, ::circle::TensorType_FLOAT32},
    {ElementType::F16, ::circle::TensorType_FLOAT16},
    {ElementType::I32, ::circle::TensorType_INT32},
    {ElementType::U8, ::circle::TensorType_UINT8},
    {ElementType::I64, ::circle::TensorType_INT64},
    {ElementType::String, ::circle::TensorType_STRING},
    {ElementType::Bool, ::circle::TensorType_BOOL},
    {ElementType::I16, ::circle::TensorType_INT16},
    {ElementType::C64, ::circle::TensorType_COMPLEX64},
    {ElementType::I8, ::circle::TensorType_INT8},
    {ElementType::F64, ::circle::TensorType_FLOAT64},
    {ElementType::C128, ::circle::TensorType_COMPLEX128},
    {ElementType::U64, ::circle::TensorType_UINT64},
    {ElementType::Resource, ::circle::TensorType_RESOURCE},
    {ElementType::Variant, ::circle::TensorType_VARIANT},
    {ElementType::U32, ::circle::TensorType_UINT32},
    {ElementType::U16, ::circle::TensorType_UINT16},
    {ElementType::I4, ::circle::TensorType_INT4},
    {ElementType::BF16, ::circle::TensorType_BFLOAT16},
    {ElementType::U4, ::circle::TensorType_UINT4},
    {ElementType::GGML_Q4_0, ::circle::TensorType_GGML_Q4_0},
    {ElementType::GGML_Q4_1, ::circle::TensorType_GGML_Q4_1},
    {ElementType::GGML_Q8_0, ::circle::TensorType_GGML_Q8_0},
    {ElementType::GGML_Q8_1, ::circle::TensorType_GGML_Q8_1},
    {ElementType::MXFP4, ::circle::TensorType_MXFP4},
    {ElementType::MXINT8, ::circle::TensorType_MXINT8},
};

} // namespace

std::optional<i8> to_wire_type(ElementType element) {
  for (const Pair &p : kPairs)
    if (p.element == element)
      return static_cast<i8>(p.wire);
  return std::nullopt;
}

std::optional<ElementType> from_wire_type(i8 wire) {
  for (const Pair &p : kPairs)
    if (static_cast<i8>(p.wire) == wire)
      return p.element;
  return std::nullopt;
}

std::optional<u64> wire_bytes(ElementType element, i64 count) {
  if (count < 0)
    return std::nullopt;
  const auto n = static_cast<u64>(count);
  switch (element) {
  case ElementType::U4:
  case ElementType::I4: return n / 2 + n % 2;
  // The blocks' shared scales lie with the elements, in a layout that no writer has fixed yet.
  case ElementType::MXFP4:
  case ElementType::MXINT8: return std::nullopt;
  default: break;
  }
  const int bytes = ir::element_bytes(element);
  u64 total = 0;
  if (bytes == 0 || __builtin_mul_overflow(n, static_cast<u64>(bytes), &total))
    return std::nullopt;
  return total;
}

} // namespace chute::circle

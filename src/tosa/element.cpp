#include "tosa/element.h"

#include "schema/tosa_1_1_generated.h"

namespace chute::tosa {

namespace {

using ir::ElementType;

struct Pair {
  ElementType element;
  ::tosa::DType wire;
};

// MXFP4 elements lie one per byte in a Constant, as all 4-bit types do.
constexpr Pair kPairs[] = {
    {ElementType::Bool, ::tosa::DType_BOOL},
    {ElementType::I4, ::tosa::DType_INT4},
    {ElementType::I8, ::tosa::DType_INT8},
    {ElementType::I16, ::tosa::DType_INT16},
    {ElementType::I32, ::tosa::DType_INT32},
    {ElementType::I48, ::tosa::DType_INT48},
    {ElementType::F32, ::tosa::DType_FP32},
    {ElementType::F16, ::tosa::DType_FP16},
    {ElementType::BF16, ::tosa::DType_BF16},
    {ElementType::F8E4M3FN, ::tosa::DType_FP8E4M3},
    {ElementType::F8E5M2, ::tosa::DType_FP8E5M2},
    {ElementType::MXFP4, ::tosa::DType_FP4E2M1},
    {ElementType::F8E8M0FNU, ::tosa::DType_FP8UE8M0},
    {ElementType::I64, ::tosa::DType_INT64},
    {ElementType::MXINT8, ::tosa::DType_MXINT8},
};

} // namespace

std::optional<u32> to_wire_type(ElementType element) {
  for (const Pair &p : kPairs)
    if (p.element == element)
      return static_cast<u32>(p.wire);
  return std::nullopt;
}

std::optional<ElementType> from_wire_type(u32 wire) {
  for (const Pair &p : kPairs)
    if (static_cast<u32>(p.wire) == wire)
      return p.element;
  return std::nullopt;
}

bool is_packed(ElementType element) {
  return element == ElementType::I4 || element == ElementType::MXFP4;
}

} // namespace chute::tosa

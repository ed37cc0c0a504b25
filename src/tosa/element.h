#pragma once

#include "ir/element_type.h"

#include <optional>

/// Element types and their numbers in a TOSA file (DType).
namespace chute::tosa {

std::optional<u32> to_wire_type(ir::ElementType element);
std::optional<ir::ElementType> from_wire_type(u32 wire);

/// Whether a Constant's bytes lie packed in the file, two elements per byte, the first one low.
bool is_packed(ir::ElementType element);

/// Bytes of an INT48 element in a file.
inline constexpr size_t kBytesOfI48 = 6;

} // namespace chute::tosa

#pragma once

#include "ir/element_type.h"

#include <optional>

namespace chute::circle {

/// The schema's TensorType number of an element type; nullopt when Circle has none (fp8, complex32,
/// …).
std::optional<i8> to_wire_type(ir::ElementType element);
/// The reverse; nullopt for numbers that the schema does not have.
std::optional<ir::ElementType> from_wire_type(i8 wire);
/// Bytes that `count` elements take in a buffer; 4-bit types are packed two a byte. nullopt for
/// types whose size does not follow from the count (strings, handles, block formats) and on
/// overflow.
std::optional<u64> wire_bytes(ir::ElementType element, i64 count);

} // namespace chute::circle

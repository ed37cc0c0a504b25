#pragma once

#include "ir/element_type.h"

#include <cstddef>

namespace chute::ir {

/// Reads one element as a double. Exact for every real type but I64/U64 beyond 2^53.
double load_element(ElementType t, const std::byte *from);
/// Writes one element converted as torch converts a Python number: floats round to nearest even,
/// integers truncate toward zero and wrap, Bool is "not zero".
void store_element(ElementType t, double value, std::byte *to);
/// The same for integers, exact in 64 bits.
i64 load_element_int(ElementType t, const std::byte *from);
void store_element_int(ElementType t, i64 value, std::byte *to);

} // namespace chute::ir

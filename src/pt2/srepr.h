#pragma once

#include "ir/sym_table.h"

#include <string_view>

namespace chute::pt2 {

/// Reads sympy's `srepr` text, as torch.export writes sizes ("Add(Mul(Integer(6), Symbol('s77',
/// positive=True, integer=True)), Integer(1))"), into the symbol table.
///
/// Known operations become SymTable operations (relations and logic as 0 or 1); everything else
/// becomes an opaque expression with its text. nullopt when the text is not of that form, is longer
/// than 16 KiB or nested deeper than 48 levels.
std::optional<ir::SymInt> parse_srepr(std::string_view text, ir::SymTable &table);

} // namespace chute::pt2

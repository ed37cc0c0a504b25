#pragma once

#include "circle/legalize/emit.h"

/// Selections whose size is known only at run time. Internal to circle/legalize.
namespace chute::circle {

/// i32 or i64 [chosen]: the row-major positions of the elements of `mask` that are not zero,
/// ascending. Null after `unsupported`.
Value *chosen_positions(Emit &e, Value *mask, SymInt chosen);

void add_selection_rules(pass::PatternSet &set);

} // namespace chute::circle

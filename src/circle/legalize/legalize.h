#pragma once

#include "circle/passes.h"

/// `legalize-circle`: ATen operators in the form that `decompose` leaves, to Circle operators.
///
/// Every rule gives the same numbers as PyTorch in f32, i32, i64 and bool. Convolutions, poolings
/// and resampling come out channels-last between TRANSPOSE operators that `sink-transposes`
/// cancels. Lowerings are chosen so that an independent runtime executes them: Circle operators
/// that none implements (CEIL, SIGN, SPLIT_V, HARD_SWISH, REVERSE_V2 over several axes, grouped
/// CONV_2D) are spelled with others.
///
/// Operators that have no lowering are reported together, one `circle.unsupported` per operator and
/// reason with the number of places, the first place, and what to do instead.
namespace chute::circle {

/// Every rule, for tools that list or count them.
const pass::PatternSet &legalize_patterns();

} // namespace chute::circle

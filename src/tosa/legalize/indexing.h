#pragma once

#include "tosa/legalize/emit.h"

namespace chute::tosa {

/// Indices into a dimension of size `n` as i32 in [0, n): negative ones count from the end.
Value *wrapped_indices(Emit &e, Value *index, i64 n);

/// Row-major positions inside a tensor of shape `in` of the elements that aten.gather takes:
/// `index` along `dim`, the element's own coordinate along the others. i32.
Value *flat_positions(Emit &e, Value *index, const Dims &in, i64 dim);

} // namespace chute::tosa

#pragma once

#include <string>
#include <vector>

namespace chute::circle {

/// The passes that turn a float Circle graph with QUANTIZE and DEQUANTIZE around its operators into
/// one whose types carry the parameters, in order. Both `convert` (whose lowering makes those pairs
/// of every fake-quantize) and `quantize` (which inserts them after calibration) run them.
///
/// What goes in: any graph of the circle dialect. QUANTIZE(real) gives a type with affine
/// parameters, DEQUANTIZE(stored) the reals; a weight is DEQUANTIZE(QUANTIZE(constant)) or
/// DEQUANTIZE(constant of integers), with per-channel parameters along the output channels; a bias
/// and constants that need no parameters of their own are left plain f32.
/// What comes out computes the same when the integers are read as reals and each operator's result
/// is rounded to its own grid. Run `fold-constants` (views of stored weights), `cse` and `dce`
/// afterwards.
const std::vector<std::string> &quantize_pipeline();

} // namespace chute::circle

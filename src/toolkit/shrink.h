#pragma once

#include "ir/graph.h"

#include <vector>

namespace chute::toolkit {

/// Sizes of dimensions of the program's inputs, constants and results that are above 1; each once,
/// the largest first. At most `most`.
std::vector<i64> extents(const ir::Graph &graph, size_t most = 64);

/// Elements of all inputs and results (symbolic dimensions count 1); saturates.
u64 count_elements(const ir::Graph &graph);

/// The same Circle program on smaller tensors: dimensions of inputs and constants with `from`
/// elements get `to`, results the shapes that inference then gives, shapes and slice ends that are
/// constants follow, the targets of RESHAPE are made to fit. Constants keep their first elements.
/// False when some operator does not work on the new shapes; the graph is then good for nothing.
/// Operators without inference (custom ones, QUANTIZE) get their declared shapes with `to` for
/// `from`. Programs with regions or with symbolic dimensions, and constants quantized per channel
/// or without dense bytes whose shape would change, are refused. Linear.
bool shrink_extent(ir::Graph &graph, i64 from, i64 to);

} // namespace chute::toolkit

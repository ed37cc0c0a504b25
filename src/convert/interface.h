#pragma once

#include "convert/convert.h"
#include "ir/graph.h"

namespace chute::convert {

/// Describes the inputs and outputs of a graph that was written.
void fill_interface(const ir::Graph &graph, ConvertReport &report);

} // namespace chute::convert

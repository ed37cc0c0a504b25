#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace chute::circle {

/// The passes of `chute optimize -O<level>`, in order. 0: what nothing uses goes. 1: every rewrite
/// that looks at one operator and its neighbours. 2: also what needs the whole graph (layouts of
/// regions, equal values that are built differently, the order of operators). Levels outside 0..2
/// give the nearest.
const std::vector<std::string> &optimize_pipeline(int level);

/// Operators as a Circle file counts them: constants, states and returns apart, regions included.
size_t count_operators(const ir::Graph &graph);

} // namespace chute::circle

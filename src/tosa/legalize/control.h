#pragma once

#include "ir/graph.h"

namespace chute::tosa {

/// Constants that branches and loops get as operands become constants of their regions, so that
/// weights are known there. Runs before the rules.
void localize_constants(ir::Graph &graph);

} // namespace chute::tosa

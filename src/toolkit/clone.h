#pragma once

#include "ir/graph.h"

#include <span>
#include <vector>

namespace chute::toolkit {

/// Copies the body of `from`, all but its return, to the end of the body of `to`, which has no
/// return yet. Both belong to one Context. `arguments` stand for the arguments of from's body, in
/// order. Names, types, attributes and provenance come along; constants stay views of the same
/// bytes. Returns what the operands of from's return have become. Linear; no recursion over
/// regions.
std::vector<ir::Value *> clone_body(const ir::Graph &from, ir::Graph &to,
                                    std::span<ir::Value *const> arguments);

} // namespace chute::toolkit

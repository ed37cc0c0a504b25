#pragma once

#include "ir/graph.h"
#include "tosa/verify.h"

#include <string>
#include <vector>

namespace chute::tosa {

/// What one operator of the source program became.
struct Coverage {
  std::string node;                 ///< the exported program's node name
  std::string module_path;          ///< empty when unknown
  std::vector<std::string> emitted; ///< "CONV2D 1x8x8x16 f32", in order
  std::optional<Violation> failed;  ///< the first requirement of the target that is not met
};

/// Per node of the source program, in order of first appearance, the TOSA operators that a lowered
/// graph has for it and what keeps them off the target (`chute explain --target tosa-1.0+int`).
/// Nodes that folded away have no row. Linear in the graph.
std::vector<Coverage> coverage(const ir::Graph &graph, const Target &target);

} // namespace chute::tosa

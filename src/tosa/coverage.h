#pragma once

#include "ir/graph.h"
#include "tosa/npu.h"
#include "tosa/verify.h"

#include <optional>
#include <string>
#include <vector>

namespace chute::tosa {

/// What one operator of the source program became.
struct Coverage {
  std::string node;                 ///< the exported program's node name
  std::string module_path;          ///< empty when unknown
  std::vector<std::string> emitted; ///< "CONV2D 1x8x8x16 f32", in order
  std::optional<Violation> failed;  ///< the first requirement of the target that is not met
  /// Of the target, by Coverages::partitions; its first operator's where it has several. -1: none,
  /// the node stays on the CPU.
  int partition = -1;
};

/// Operators that can run on the target at one go: connected, and no path leaves and comes back.
struct Partition {
  u64 operators = 0;
  u64 nodes = 0; ///< rows whose `partition` this is
};

struct Coverages {
  std::vector<Coverage> rows;
  std::vector<Partition> partitions; ///< in order of first appearance
};

/// Per node of the source program, in order of first appearance, the TOSA operators that a lowered
/// graph has for it and what keeps them off the target (`chute explain --target tosa-1.0+int`);
/// with `npu` the limits of that processor, too. A node with one operator that fails stays on the
/// CPU as a whole. Nodes that folded away have no row. Bodies of control flow belong to their
/// operator's partition. Linear in the graph.
Coverages coverage(const ir::Graph &graph, const Target &target, std::optional<Npu> npu = {});

} // namespace chute::tosa

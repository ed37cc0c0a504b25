#pragma once

#include "ir/graph.h"
#include "support/counters.h"
#include "support/result.h"

#include <map>
#include <string>
#include <vector>

namespace chute::toolkit {

struct CleanupOptions {
  /// Also drop inputs that nothing uses; the interface is kept otherwise.
  bool prune_inputs = false;
};

struct CleanupReport {
  u64 dead_operators = 0;
  std::map<std::string, u64> dead_by_name; ///< operator name -> number
  u64 unused_constants = 0;                ///< among the graph's, constants that nothing used
  std::vector<std::string> pruned_inputs;
  std::vector<u32> pruned_positions; ///< among the inputs as they were
  WorkCounters work;
};

/// Erases what computes nothing that anyone asks for: operators without effect whose results are
/// unused, transitively, and constants without users. Stays: operators with an effect (variables,
/// custom operators, operators with subgraphs that have one), every output, every input unless told
/// otherwise. Unused tensors, buffers and operator codes of a file are not part of a graph at all,
/// and equal constants are stored once by the writer. Linear.
Result<CleanupReport> cleanup(ir::Graph &graph, const CleanupOptions &options = {});

} // namespace chute::toolkit

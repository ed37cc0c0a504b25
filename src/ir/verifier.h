#pragma once

#include "ir/graph.h"
#include "support/diag.h"

namespace chute::ir {

struct VerifyOptions {
  bool check_inference = false; ///< also compare declared result types with inferred ones
};

/// Checks the graph's invariants in one linear, iterative walk and reports every violation with a
/// stable code (`ir.*`, docs/diagnostics.md).
void verify(const Graph &graph, Diagnostics &diagnostics, const VerifyOptions &options = {});

} // namespace chute::ir

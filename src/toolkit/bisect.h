#pragma once

#include "pass/pass.h"
#include "toolkit/compare.h"
#include "toolkit/diff.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chute::toolkit {

struct BisectOptions {
  /// Makes the program anew, always the same, in one and the same Context.
  std::function<Result<std::unique_ptr<ir::Graph>>()> load;
  std::vector<std::string> passes; ///< the pipeline under suspicion
  pass::PipelineOptions pipeline;  ///< settings of the passes
  Tolerance tolerance;
  int threads = 0;
  /// Called before each run, for progress; may be empty.
  std::function<void(const std::string &)> on_step;
};

struct BisectReport {
  bool found = false;
  std::string pass;      ///< the first after which outputs are beyond the tolerance
  size_t pass_index = 0; ///< its position in the pipeline
  std::string rule;      ///< the rewrite; empty when it is work of the pass outside of its rules
  u64 application = 0;   ///< 1 for the first rewrite in that pass; 0: see `rule`
  u64 rewrites = 0;      ///< that the pass makes altogether
  std::vector<OutputDifference> outputs; ///< just behind that rewrite
  DiffReport change;                     ///< what the rewrite did to the graph
  u64 runs = 0;                          ///< executions of the program
};

/// Names the first rewrite after which the program gives other numbers than before the pipeline: a
/// binary search over the passes, then over the rewrites of the pass that was found, each with the
/// program made anew. Takes about log2(passes) + log2(rewrites) executions. If several rewrites
/// change numbers, it is one of those that cross the tolerance.
///
/// Errors: those of load, the passes and eval::evaluate.
Result<BisectReport> bisect(std::span<const eval::Tensor> inputs, const BisectOptions &options);

} // namespace chute::toolkit

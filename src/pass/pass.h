#pragma once

#include "ir/graph.h"
#include "pass/rewriter.h"
#include "support/counters.h"
#include "support/diag.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chute::pass {

/// Options that any pass may read by name (`--set name=value`); each pass documents its own.
using Settings = std::map<std::string, std::string, std::less<>>;

/// What a pass gets: the graph and everything shared over a pipeline.
struct PassContext {
  ir::Graph &graph;
  Diagnostics &diagnostics;
  WorkCounters &counters;
  const Settings &settings;
  RewriteOptions rewrite;                     ///< limits shared over the pipeline
  std::vector<PatternStats> *stats = nullptr; ///< filled when --stats is on

  bool run(const PatternSet &patterns, void *user = nullptr) {
    return run_patterns(graph, patterns, diagnostics, counters, rewrite, stats, user);
  }
};

/// A pass reports errors through ctx.diagnostics; the pipeline stops after one that did.
using PassFn = void (*)(PassContext &ctx);

/// One line of a list (aten/passes.def, circle/passes.def, pass/passes.def):
///   PASS(fold-constants, fold_constants, "evaluate operators whose operands are constants")
struct PassInfo {
  std::string_view name; ///< kebab-case; file, test and documentation anchor are the same word
  PassFn run = nullptr;
  std::string_view summary; ///< one line, shown by `chute passes`
  std::string_view dialect; ///< "core", "aten", "circle", "tosa"
};

/// All passes of all linked dialects. Filled by register_*_passes() at start-up (idempotent).
class PassRegistry {
public:
  static PassRegistry &global();
  void add(const PassInfo &info);
  const PassInfo *find(std::string_view name) const;
  const std::vector<PassInfo> &all() const { return passes_; }

private:
  std::vector<PassInfo> passes_;
};

void register_core_passes();

struct PassRecord {
  std::string name;
  double seconds = 0;
  u64 ops_before = 0;
  u64 ops_after = 0;
  WorkCounters counters;
  std::vector<PatternStats> patterns;
};

struct PipelineOptions {
  bool verify_each = false;
  bool collect_stats = false;
  u64 rewrite_limit = ~u64{0}; ///< `--stop-after N` rewrites over the whole pipeline
  Settings settings;
  /// Called after each pass (`--print-after`, progress); may be empty.
  std::function<void(const PassRecord &, const ir::Graph &)> after_pass;
};

/// Runs passes in order; stops after the first that reports an error. `records` gets one entry per
/// pass run. Returns false when an error was reported.
bool run_pipeline(ir::Graph &graph, const std::vector<std::string> &passes,
                  Diagnostics &diagnostics, const PipelineOptions &options,
                  std::vector<PassRecord> &records);

} // namespace chute::pass

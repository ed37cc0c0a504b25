#pragma once

#include "pass/pass.h"
#include "support/diag.h"
#include "support/result.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace chute::convert {

struct ConvertOptions {
  /// Threads that decode JSON and fold constants; the output is the same for any number. 0: one per
  /// core.
  unsigned threads = 1;
  /// Which of an archive's models; empty: the only one, or the one called `model`.
  std::string model;
  /// Verification after each pass, statistics, limits, settings, a callback per pass.
  pass::PipelineOptions pipeline;
  /// Called as each phase begins ("read", a pass's name, "write"); may be empty.
  std::function<void(std::string_view)> on_phase;
};

/// What a conversion did.
struct ConvertReport {
  std::string torch_version;
  u64 nodes_read = 0; ///< nodes of the exported graph
  u64 ops_written = 0;
  u64 bytes_written = 0;
  double read_seconds = 0;
  double pass_seconds = 0;
  double write_seconds = 0;
  std::vector<pass::PassRecord> passes;
};

/// Converts the torch.export archive `from` to the Circle file `to`: reads, runs
/// core_aten_pipeline() and circle_pipeline(), verifies the graph and writes. Every problem is in
/// `diagnostics`; returns false when one of them is an error, and then writes no file.
///
/// f64, f16 and bf16 tensors become f32 (pass `narrow-floats`), inputs and outputs included; a note
/// names those of the interface.
bool convert_pt2_to_circle(const std::string &from, const std::string &to,
                           const ConvertOptions &options, Diagnostics &diagnostics,
                           ConvertReport &report);

} // namespace chute::convert

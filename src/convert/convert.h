#pragma once

#include "pass/pass.h"
#include "support/diag.h"
#include "support/result.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chute::quant {
class Ledger;
}

namespace chute::convert {

/// What a program is lowered to.
enum class Target : u8 {
  Circle,
  Tosa,       ///< a TOSA file
  Mlir,       ///< the same program as text of MLIR's tosa dialect
  ExecuTorch, ///< a program that delegates all of itself to the TOSA or the Ethos-U backend
};

struct ConvertOptions {
  /// Threads that decode JSON and fold constants; the output is the same for any number. 0: one per
  /// core.
  unsigned threads = 1;
  /// Which of an archive's models; empty: the only one, or the one called `model`.
  std::string model;
  /// "ethos-u55-128" and its kin: Vela compiles the TOSA file, its figures go to the report, and an
  /// ExecuTorch program holds its commands. Empty: none.
  std::string accelerator;
  /// What a TOSA program has to keep to ("tosa-1.0+int", "ethos-u55-128"), for explain_pt2().
  /// Empty: anything.
  std::string requirements;
  /// Verification after each pass, statistics, limits, settings, a callback per pass.
  pass::PipelineOptions pipeline;
  /// Follows scales and zero points when given; finished after the last pass.
  quant::Ledger *ledger = nullptr;
  /// The process ends next: graphs are left to the operating system instead of being taken apart.
  bool leave_memory = false;
  /// Called as each phase begins ("read", a pass's name, "write"); may be empty.
  std::function<void(std::string_view)> on_phase;
};

/// One tensor of a written file's interface.
struct InterfaceTensor {
  std::string name;
  std::string dtype;      ///< numpy's name ("float32", "int8"), or ml_dtypes' ("bfloat16")
  std::vector<i64> shape; ///< -1 where the size is known only at run time
  /// Of a tensor that is quantized as a whole.
  std::optional<double> scale;
  std::optional<i64> zero_point;
};

/// An operator of the accelerator's schedule, with the module that it came from.
struct AcceleratorLayer {
  std::string name, original, target, module_path, source_line;
  double cycles = 0, macs = 0, utilization = 0;
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
  std::vector<InterfaceTensor> inputs; ///< in the file's order
  std::vector<InterfaceTensor> outputs;
  /// Of Vela, when an accelerator was asked for; and the numbers of its summary by their names.
  std::vector<AcceleratorLayer> layers;
  std::vector<std::pair<std::string, double>> accelerator_totals;
};

/// {"interface": {"inputs": [{"name", "dtype", "shape", "scale", "zero_point"}…], "outputs": […]}},
/// with null where a tensor is not quantized, and a newline. With an accelerator also
/// {"accelerator":
/// {"totals": {…}, "layers": [{"name", "operator", "target", "module", "source", "cycles", "macs",
/// "utilization"}…]}}.
std::string report_json(const ConvertReport &report);

/// Converts the torch.export archive `from` to the file `to`: reads, runs core_aten_pipeline() and
/// the target's pipeline, verifies the graph and writes. Every problem is in `diagnostics`; returns
/// false when one of them is an error, and then writes no file.
///
/// Circle: f64, f16 and bf16 tensors become f32 (pass `narrow-floats`). TOSA and ExecuTorch: i64
/// becomes i32 and f64 f32 (pass `narrow-types`). Inputs and outputs included; a note names those
/// of the interface.
bool convert_pt2(const std::string &from, const std::string &to, Target target,
                 const ConvertOptions &options, Diagnostics &diagnostics, ConvertReport &report);

} // namespace chute::convert

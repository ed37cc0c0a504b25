#pragma once

#include "convert/convert.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chute::convert {

struct Weight {
  std::string name;
  std::string type; ///< "f32[64,3,7,7]"
  u64 bytes = 0;
};

struct DynamicSize {
  std::string name;
  i64 min = 0;
  std::optional<i64> max; ///< absent: unbounded
};

/// A node of the program against ConvertOptions::requirements.
struct Placement {
  std::string node;
  std::string module_path;
  std::vector<std::string> emitted; ///< "CONV2D 1x8x8x16 f32", in order
  std::string failed;               ///< the clause that is not met; empty: the target takes it
  int partition = -1;               ///< of Explanation::partitions; -1: it stays on the CPU
};

/// Nodes that the target can run at one go.
struct PlacedTogether {
  u64 nodes = 0;
  u64 operators = 0; ///< of the output
};

/// What a conversion would do, found out without writing anything.
struct Explanation {
  using Counts = std::vector<std::pair<std::string, u64>>; ///< by falling count, then by name

  std::string torch_version;
  u64 nodes = 0;
  Counts operators;     ///< of the exported program
  Counts element_types; ///< of its values
  std::vector<DynamicSize> sizes;
  u64 weight_bytes = 0;
  u64 weight_count = 0;
  Counts weight_types;              ///< bytes by element type
  std::vector<Weight> largest;      ///< at most ten, by falling size
  std::vector<Diagnostic> problems; ///< everything that stands in the way, in order of the passes
  std::vector<Diagnostic> notes;    ///< warnings and notes of a conversion
  /// The pass after which nothing more could be found out; empty when all of them ran. What later
  /// passes would have said is then unknown.
  std::string stopped_after;
  /// Of the file, when it can be made.
  std::optional<u64> output_bytes;
  Counts output_operators;
  /// Of every node that is left after lowering, when requirements were given. Those that fail would
  /// stay on the CPU.
  std::vector<Placement> placements;
  std::vector<PlacedTogether> partitions;
};

/// Reads the archive and runs the target's whole pipeline in memory, going on after operators that
/// have no lowering so that all of them are found in one run. What lowers but does not meet
/// `options.requirements` is a problem too (codes `tosa.profile`, `tosa.version`, `tosa.level`,
/// `tosa.types`, `tosa.ethosu`). False when the archive can not be
/// read, or the requirements are malformed (the reason is in `diagnostics`); otherwise everything
/// found is in `out`.
bool explain_pt2(const std::string &from, Target target, const ConvertOptions &options,
                 Diagnostics &diagnostics, Explanation &out);

/// The operator that a finding is about: "aten.conv2d.default" of "%conv aten.conv2d.default".
std::string operator_of(const Diagnostic &d);

/// One JSON object on several lines.
std::string explanation_json(const std::string &input, Target target, const Explanation &e);
/// What a terminal shows.
std::string explanation_text(const std::string &input, Target target, const Explanation &e);

} // namespace chute::convert

#pragma once

#include "ir/graph.h"
#include "support/counters.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace chute::toolkit {

/// Which operators to keep. `ops`, `names` and `modules` are united; `from` and `to` cut a region
/// out of the whole program, or out of that union when there is one.
struct Selection {
  /// "3,5-9,12:20": positions of operators as in the file, constants not counted; ranges include
  /// their last. Blanks are ignored.
  std::string ops;
  /// Operators one of whose results has such a name.
  std::vector<std::string> names;
  /// Operators that come from this module or one inside it: by module path where the program has
  /// one, otherwise by the names of results, whose parts are separated by one of `. / : ; _`.
  std::vector<std::string> modules;
  /// Tensors: operators that depend on one of `from` and that one of `to` depends on.
  std::vector<std::string> from;
  std::vector<std::string> to;
  /// `names`, `from` and `to` are regular expressions that match anywhere in a name (or the whole
  /// name with `full_match`); otherwise names, or globs when they hold `* ? [`.
  bool regex = false;
  bool full_match = false;

  bool empty() const {
    return ops.empty() && names.empty() && modules.empty() && from.empty() && to.empty();
  }
};

struct ExtractReport {
  u64 operators = 0; ///< kept
  u64 operators_before = 0;
  std::vector<std::string> inputs; ///< names of the new interface
  std::vector<std::string> outputs;
  std::vector<u64> positions; ///< of the kept operators, as they were
  WorkCounters work;          ///< ops_visited: operators and operands looked at
};

/// Cuts the graph down to the selected operators, in place. Any subset will do. Inputs become the
/// values that selected operators take from others, those that were inputs before first, in their
/// order, the rest in order of first use; outputs the results that were outputs, that another
/// operator used, or that nobody uses (unless a neighbour result is used). Constants and variables
/// stay with the operators that use them; names of ports that stay are kept. Linear.
///
/// Errors, kind Usage: `toolkit.select.none` (no selector given), `toolkit.select.ops` (the text of
/// a range, or outside of the program), `toolkit.select.unmatched` (every pattern has to match
/// something), `toolkit.select.ambiguous` (a plain tensor name that several tensors have),
/// `toolkit.select.empty` (nothing lies between the tensors), `toolkit.pattern`. The graph is
/// unchanged then.
Result<ExtractReport> extract(ir::Graph &graph, const Selection &selection);

/// The operators of the body that a file numbers: all but constants, variables and the return.
std::vector<ir::Op *> numbered_ops(ir::Graph &graph);

} // namespace chute::toolkit

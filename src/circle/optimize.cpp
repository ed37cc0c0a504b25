#include "circle/optimize.h"

#include "circle/ops.h"
#include "ir/walk.h"

#include <algorithm>
#include <array>

namespace chute::circle {

const std::vector<std::string> &optimize_pipeline(int level) {
  static const std::array<std::vector<std::string>, 3> pipelines{{
      {"dce", "store-state"},
      {
          "optimize-circle", "fold-constants", "cse",
          "optimize-circle", // what equal operators had hidden, and what folding left
          "cse",
          "store-state", // variables are written last
      },
      // All of -O1, and then what lessens further: no step adds operators. (sink-transposes may: a
      // transpose that moves through several users is one behind each of them.)
      {
          "optimize-circle", "fold-constants", "cse", "optimize-circle", "cse", "assign-layouts",
          "optimize-circle", "cse", "cse-structural", "optimize-circle", "cse", "order-for-memory",
          "store-state", // variables are written last
      },
  }};
  return pipelines[static_cast<size_t>(std::clamp(level, 0, 2))];
}

size_t count_operators(const ir::Graph &graph) {
  size_t n = 0;
  ir::walk(graph, [&](const ir::Op &op) { n += is_circle(op.opcode()); });
  return n;
}

} // namespace chute::circle

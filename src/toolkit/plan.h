#pragma once

#include "ir/graph.h"
#include "support/counters.h"

#include <string>
#include <vector>

namespace chute::toolkit {

struct PlanOptions {
  u64 alignment = 64; ///< of every tensor, in bytes; a power of two
  /// RESHAPE, SQUEEZE, EXPAND_DIMS and the like share their operand's memory.
  bool alias_views = true;
  /// An elementwise operator writes over an operand of its result's size that nothing needs after
  /// it.
  bool in_place = false;
};

/// A stretch of memory and the time that it is in use: from the step that defines it to the last
/// one that reads it, both included. Steps are operators in execution order; inputs live from step
/// 0 on, outputs to the end.
struct PlanTensor {
  std::string name;
  std::string op;  ///< that defines it; "input"; or "work memory of …" for an operator's regions
  u64 bytes = 0;   ///< of the tensor
  u64 aligned = 0; ///< reserved
  u64 first = 0;
  u64 last = 0;
  u64 offset = 0;
  u32 aliases = 0; ///< further tensors in the same memory
  bool input = false;
  bool output = false;
};

struct PlanReport {
  std::vector<PlanTensor> tensors; ///< in order of definition; one per stretch of memory
  std::vector<std::string> steps;  ///< operator names
  std::vector<u64> live;           ///< by step: bytes in use, aligned
  u64 lower_bound = 0;             ///< the largest of `live`: no placement needs less
  u64 peak_step = 0;
  u64 arena = 0;      ///< what the placement needs
  u64 total = 0;      ///< without any reuse
  u64 constants = 0;  ///< bytes of constants, which are not part of the plan
  u64 variables = 0;  ///< bytes of variables, likewise
  u64 aliased = 0;    ///< tensors that share memory with their operand
  u64 dynamic = 0;    ///< tensors with symbolic sizes, which count with the smallest they allow
  std::string method; ///< "greedy by size" or "in order of time", whichever needs less
  WorkCounters work;  ///< ops_visited: operators, uses, and pairs of tensors looked at
};

/// When each tensor of the body lives, and an offset for it such that tensors that live at the same
/// time do not overlap. Two placements are tried: largest first, each at the lowest place that is
/// free over its whole life (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
/// Inference", 2020), unless the tensors that live together are too many pairs for linear work; and
/// in order of time into the best fitting gap. Regions of an operator count as work memory of their
/// own peak. O(n log n).
PlanReport plan(const ir::Graph &graph, const PlanOptions &options = {});

/// What another order of the operators gives.
struct OrderReport {
  PlanReport plan;     ///< in that order
  u64 order_bound = 0; ///< no order needs less (tensors aligned to 64 bytes, views in place)
  bool better = false; ///< its lower bound is below that of the order that the graph has
};

/// The plan after the pass `order-for-memory`, which changes the graph. `before` is the plan of the
/// graph as it comes, with the same options. O(n log n).
OrderReport plan_in_another_order(ir::Graph &graph, const PlanReport &before,
                                  const PlanOptions &options = {});

/// A self-contained picture: tensors as boxes over time and offset, the bytes in use as a line. The
/// largest `most` tensors are drawn.
std::string plan_svg(const PlanReport &report, const std::string &title, size_t most = 4000);

} // namespace chute::toolkit

#pragma once

#include "ptq/calibrate.h"
#include "ptq/rules.h"
#include "ptq/scheme.h"

#include <string>
#include <vector>

namespace chute::ptq {

struct PlanOptions {
  const Scheme *scheme = nullptr;
  /// Operators that stay in float: patterns with * and ? on the name of a result, the module path
  /// or the operator ("circle.softmax", "SOFTMAX").
  std::vector<std::string> keep_float;
  /// One scale for all channels of a weight tensor.
  bool per_layer = false;
};

/// An operator on real numbers that stays in float.
struct Refusal {
  const ir::Op *op = nullptr;
  std::string reason;
};

/// Which parameters each value gets. Decided before anything changes.
struct Plan {
  const Scheme *scheme = nullptr;
  bool per_layer = false;
  std::vector<bool> quantized;                 ///< by Op::id
  std::vector<const ir::Quantization *> quant; ///< by Value::id; null: it is no activation
  std::vector<Refusal> refused;                ///< in the graph's order
  /// Masked operands of additions: how far below zero a mask must reach, by Value::id of the
  /// result.
  std::vector<float> mask_depth;
};

/// Parameters by the rules of rules.h. Values that share parameters get the union of their ranges,
/// with that of the constants moved among them. Cost: linear.
Plan make_plan(const ir::Graph &graph, const Ranges &ranges, const PlanOptions &options);

/// Whether `text` matches a pattern of * (any run of characters) and ? (any one).
bool matches_glob(std::string_view pattern, std::string_view text);

/// Numbers of a float constant; with a threshold (Masks), without those that stand for nothing.
Range range_of(const ir::Constant &c, float threshold = 0);

} // namespace chute::ptq

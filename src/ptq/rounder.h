#pragma once

#include "ptq/calibrate.h"
#include "ptq/rules.h"

#include <memory>
#include <vector>

namespace chute::ptq {

/// Decides which integers stand for an operator's weights, while apply() goes through the graph in
/// order.
class WeightRounder {
public:
  virtual ~WeightRounder() = default;
  /// Called before the first operator, with the graph whose interface has its final types.
  virtual Status begin(const ir::Graph &quantized) = 0;
  /// Real weights to store instead of the operator's own; undefined: its own, rounded to nearest.
  /// The operator's data operand has its final form.
  virtual Result<eval::Tensor> adjust(const ir::Op &op, const Roles &roles) = 0;
  /// The integers for what adjust() returned last.
  virtual Result<eval::Tensor> round(const eval::Tensor &w, ir::ElementType element,
                                     const ir::Quantization &q) = 0;
  /// The operator has its final form.
  virtual Status done(const ir::Op &op) = 0;
};

/// GPTQ (Frantar et al., 2022) with the operands that the quantized graph has. For each
/// FULLY_CONNECTED and ungrouped CONV_2D, with X the rows that its weights meet, weights are
/// rounded input by input, and each one's error is spread over those that follow so that |X (W -
/// W')^T| stays small: by row of U, the upper Cholesky factor of (X^T X + d)^-1, d = 1% of the mean
/// of the diagonal.
///
/// The quantized graph is executed once, operator by operator, on all samples; tensors go after
/// their last use. Memory: the live tensors of all samples, and three matrices of (input depth)^2.
/// Time: (input depth)^2 * (input depth + outputs) per layer. At most 8192 rows per layer are used.
/// Layers deeper than `deepest`, and weights that are no constants, are left to rounding to
/// nearest. The graph passes check_gptq(). Errors: those of evaluation.
std::unique_ptr<WeightRounder> make_gptq(const ir::Graph &reference, std::vector<Sample> samples,
                                         i64 deepest);

/// Whether a graph can be executed operator by operator: static shapes, no control flow, no state.
/// Error: quantize.gptq (kind Unsupported).
Status check_gptq(const ir::Graph &graph);

} // namespace chute::ptq

#pragma once

#include "eval/tensor.h"
#include "ir/graph.h"
#include "support/result.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace chute::eval {

struct EvalOptions {
  /// Threads for the kernels; 0 takes all cores. Results have the same bits for every number.
  int threads = 0;
  /// Called with every value as it is computed, region arguments and results of operators alike,
  /// constants not (`chute run --layers`). May be empty.
  std::function<void(const ir::Value &, const Tensor &)> on_value;
  /// Current content of mutable buffers by the name of their core.state; those that are missing
  /// start from their initial value. May be null.
  const std::map<std::string, Tensor, std::less<>> *state = nullptr;
};

/// Whether evaluate() can compute the operator (a kernel exists, or it is control flow or core).
bool can_evaluate(const ir::Op &op);

/// Runs a program. `inputs`: one tensor per argument of the body, in order; Python numbers as
/// rank-0 I64, F64 or Bool tensors. The result has one tensor per entry of graph.outputs() — new
/// contents of mutated buffers and inputs in their places, literal outputs as rank-0 tensors (None:
/// undefined) — or, for a graph without declared outputs, one per operand of its core.return.
///
/// Symbolic dims are bound from the inputs' shapes, which must agree with each other and with the
/// symbols' ranges. Values are freed after their last use. Errors: eval.inputs, eval.shape,
/// eval.no_kernel (names the operator), eval.quantized, eval.kernel, eval.no_data (weights that the
/// file does not hold), eval.symbol, eval.result_type, eval.memory.
Result<std::vector<Tensor>> evaluate(const ir::Graph &graph, std::span<const Tensor> inputs,
                                     const EvalOptions &options = {});

/// One operator on given operands (null: absent), its result types and attributes static. For
/// constant folding. Control flow and core operators are not accepted.
Result<std::vector<Tensor>> evaluate_op(const ir::Graph &graph, const ir::Op &op,
                                        std::span<const Tensor *const> operands);

} // namespace chute::eval

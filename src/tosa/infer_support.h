#pragma once

#include "ir/context.h"
#include "ir/sym_table.h"
#include "tosa/infer.h"

#include <string>

/// What the inference families share.
namespace chute::tosa {

/// One call of an inference function.
struct Inference {
  const ir::Op &op;
  ir::Graph &graph;
  std::vector<ir::Type> &out;

  using Dims = std::vector<ir::SymInt>;

  ir::Context &ctx() const { return graph.context(); }
  ir::SymTable &sym() const { return graph.context().sym(); }
  ir::Type type(u32 i) const { return op.operand(i)->type(); }
  ir::ElementType element(u32 i = 0) const { return type(i).element(); }
  int rank(u32 i = 0) const { return type(i).rank(); }
  Dims dims(u32 i = 0) const { return {type(i).shape().begin(), type(i).shape().end()}; }
  i64 integer(std::string_view name) const { return op.attr(name).as_int().value(); }

  Status give(ir::ElementType element, std::span<const ir::SymInt> shape,
              const ir::Quantization *quant = nullptr) const {
    out.push_back(ctx().tensor_type(element, shape, quant));
    return {};
  }
  /// Elements of operand 0 in another arrangement: its element type and per-tensor quantization.
  Status moved(std::span<const ir::SymInt> shape) const {
    const ir::Quantization *q = type(0).quant();
    return give(element(), shape, q && q->kind == ir::QuantKind::PerTensor ? q : nullptr);
  }
  tl::unexpected<Diagnostic> bad(std::string why) const {
    return fail(ErrorKind::Failure, kContractCode, std::move(why), std::string(op.name()));
  }
  tl::unexpected<Diagnostic> unknown(std::string why) const {
    return fail(ErrorKind::Failure, kUnknownCode, std::move(why), std::string(op.name()),
                "give the result type explicitly");
  }
  /// Operands 0 .. n-1 are tensors; a rank below zero stands for any.
  Status tensors(u32 n, int rank = -1) const;
  /// The attribute as an axis of operand 0.
  Result<size_t> axis() const;
  /// A list attribute of `n` entries, all at least `low`.
  Result<std::vector<i64>> list(std::string_view name, size_t n, i64 low) const;
  /// Shapes of equal rank, dimensions of 1 broadcast.
  Result<Dims> broadcast(const Dims &a, const Dims &b) const;
};

} // namespace chute::tosa

/// Propagates an error of a Result or Status.
#define TOSA_TRY(expression)                                                                       \
  do {                                                                                             \
    if (auto tosa_status_ = (expression); !tosa_status_)                                           \
      return tl::unexpected(tosa_status_.error());                                                 \
  } while (false)
#define TOSA_TRY_TO(variable, expression)                                                          \
  auto variable##_result_ = (expression);                                                          \
  if (!variable##_result_)                                                                         \
    return tl::unexpected(variable##_result_.error());                                             \
  auto &variable = *variable##_result_

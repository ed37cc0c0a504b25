#pragma once

#include "circle/infer.h"
#include "ir/context.h"
#include "ir/sym_table.h"

#include <boost/container/small_vector.hpp>
#include <optional>
#include <string>

/// What the inference families share.
namespace chute::circle {

using Dims = boost::container::small_vector<ir::SymInt, 6>;

inline std::span<const ir::SymInt> span_of(const Dims &d) { return {d.data(), d.size()}; }

/// The elements of an integer tensor of at most 64 elements in row-major order: those of a
/// constant, or expressions over symbolic dimensions when the tensor is computed from shapes
/// (SHAPE, slices, CONCATENATION, PACK, arithmetic). nullopt when they are run-time values. Looks
/// at a bounded number of producers.
std::optional<Dims> integer_values(const ir::Value *value, ir::Graph &graph);
/// The value of a constant with one element.
std::optional<double> scalar_value(const ir::Value *value);
/// ... of a tensor with one integer element, symbolic allowed.
std::optional<ir::SymInt> integer_value(const ir::Value *value, ir::Graph &graph);

/// One call of an inference function.
struct Inference {
  const ir::Op &op;
  ir::Graph &graph;
  std::vector<ir::Type> &out;

  ir::Context &ctx() const { return graph.context(); }
  ir::SymTable &sym() const { return graph.context().sym(); }

  /// The type of operand `i` of the table, which has to be a present tensor.
  ir::Type type(u32 i) const { return op.arg(i)->type(); }
  bool has(u32 i) const { return op.arg(i) != nullptr; }
  i64 int_attr(std::string_view name) const { return op.attr(name).as_int().value(); }
  bool bool_attr(std::string_view name) const { return op.attr(name).as_bool(); }
  std::string_view string_attr(std::string_view name) const { return op.attr(name).as_string(); }

  Status give(ir::ElementType element, std::span<const ir::SymInt> shape,
              const ir::Quantization *quant = nullptr) const {
    out.push_back(ctx().tensor_type(element, shape, quant));
    return {};
  }
  Status give(ir::ElementType element, const Dims &shape,
              const ir::Quantization *quant = nullptr) const {
    return give(element, span_of(shape), quant);
  }
  /// Elements of operand `i` in another arrangement: its element type and per-tensor quantization.
  Status moved(u32 i, const Dims &shape) const {
    const ir::Quantization *q = type(i).quant();
    return give(type(i).element(), shape, q && q->kind == ir::QuantKind::PerTensor ? q : nullptr);
  }

  tl::unexpected<Diagnostic> bad(std::string why) const {
    return fail(ErrorKind::Failure, kContractCode, std::move(why), std::string(op.name()));
  }
  tl::unexpected<Diagnostic> unknown(std::string why) const {
    return fail(ErrorKind::Failure, kUnknownCode, std::move(why), std::string(op.name()),
                "give the result type explicitly");
  }

  /// Wraps a negative axis; the error names the rank.
  Result<int> axis(i64 value, int rank) const;
  Result<Dims> broadcast(std::span<const ir::SymInt> a, std::span<const ir::SymInt> b) const;
  /// Requires tensors of that rank / at least that rank.
  Status need_rank(u32 operand, int rank) const;
  Status need_min_rank(u32 operand, int rank) const;
};

Dims to_dims(std::span<const ir::SymInt> shape);
/// "[1,s3,8]"
std::string to_string(std::span<const ir::SymInt> shape, const ir::SymTable &sym);

} // namespace chute::circle

/// Propagates an error of a Result or Status.
#define CIRCLE_TRY(expression)                                                                     \
  do {                                                                                             \
    if (auto circle_status_ = (expression); !circle_status_)                                       \
      return tl::unexpected(circle_status_.error());                                               \
  } while (false)
#define CIRCLE_TRY_TO(variable, expression)                                                        \
  auto variable##_result_ = (expression);                                                          \
  if (!variable##_result_)                                                                         \
    return tl::unexpected(variable##_result_.error());                                             \
  auto &variable = *variable##_result_

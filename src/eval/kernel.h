#pragma once

#include "eval/tensor.h"
#include "ir/op.h"
#include "support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chute::eval {

/// A Python number given as an attribute.
struct Scalar {
  bool is_int = true; ///< Int or Bool; otherwise `real` is the value
  i64 integer = 0;
  double real = 0; ///< set in both cases
};

/// The declared type of a result, with symbolic dims resolved for this run. A dim that only the
/// kernel can know (nonzero, masked_select) is -1.
struct ResultType {
  ElementType element = ElementType::None;
  Shape shape;
  bool known() const {
    for (i64 d : shape)
      if (d < 0)
        return false;
    return true;
  }
};

/// Thrown by KernelContext::out() for a result whose shape only the kernel can find out (the
/// evaluator turns it into a Diagnostic, as it does std::bad_alloc).
struct UnknownShape {};

/// Resolves a symbolic integer for the current run. The evaluator has checked beforehand that every
/// attribute of the operator resolves.
using ResolveFn = i64 (*)(const void *state, ir::SymInt value);

/// What a kernel gets: operands, attributes, declared results. A kernel reads operands and sets
/// every result, either through out() or through set().
class KernelContext {
public:
  KernelContext(const ir::Op &op, std::span<const Tensor *const> operands,
                std::span<const ResultType> types, std::span<Tensor> results, ResolveFn resolve,
                const void *resolve_state)
      : op_(op),
        operands_(operands),
        types_(types),
        results_(results),
        resolve_(resolve),
        resolve_state_(resolve_state) {}

  const ir::Op &op() const { return op_; }

  // Operands by position in the operator's table.
  bool has(u32 spec) const { return maybe(spec) != nullptr; }
  const Tensor &in(u32 spec) const;
  const Tensor *maybe(u32 spec) const; ///< null when absent
  /// All tensors of a variadic operand; null where an optional one is absent.
  std::span<const Tensor *const> list(u32 spec) const;

  // Attributes by name.
  bool is_none(std::string_view name) const { return op_.attr(name).is_none(); }
  i64 integer(std::string_view name) const;
  i64 integer_or(std::string_view name, i64 fallback) const {
    return is_none(name) ? fallback : integer(name);
  }
  double real(std::string_view name) const; ///< Float, Int or Bool
  double real_or(std::string_view name, double fallback) const {
    return is_none(name) ? fallback : real(name);
  }
  bool boolean(std::string_view name) const;
  Scalar scalar(std::string_view name) const;
  std::string_view text(std::string_view name) const;     ///< empty when None
  std::vector<i64> integers(std::string_view name) const; ///< empty when None
  std::vector<double> reals(std::string_view name) const;

  // Results.
  u32 num_results() const { return static_cast<u32>(types_.size()); }
  const ResultType &type(u32 i = 0) const { return types_[i]; }
  /// Allocated with the declared type on the first call. Throws std::bad_alloc, UnknownShape.
  Tensor &out(u32 i = 0);
  void set(u32 i, Tensor t) { results_[i] = std::move(t); }

  /// An error about the operands or attributes; the evaluator adds where it happened.
  tl::unexpected<Diagnostic> fail(std::string message) const;

private:
  const ir::Op &op_;
  std::span<const Tensor *const> operands_;
  std::span<const ResultType> types_;
  std::span<Tensor> results_;
  ResolveFn resolve_;
  const void *resolve_state_;
};

using KernelFn = Status (*)(KernelContext &);

/// A kernel under the full name of its operator.
struct KernelEntry {
  std::string_view name;
  KernelFn run;
};

/// Kernels by opcode. The first use registers the families of eval/kernels; a dialect adds its own
/// lists through add() at start-up, after its operators are registered.
class KernelTable {
public:
  static KernelTable &global();
  /// Names that no registered dialect knows are kept out; they are returned for tests.
  std::vector<std::string_view> add(std::span<const KernelEntry> entries);
  KernelFn find(ir::OpCode code) const { return kernels_[ir::index(code)]; }

private:
  KernelTable();
  KernelFn kernels_[ir::kMaxOpCode] = {};
};

/// Inside a kernel (a KernelContext named `ctx`): fails with `message` unless `cond`.
#define EVAL_REQUIRE(cond, message)                                                                \
  do {                                                                                             \
    if (!(cond))                                                                                   \
      return ctx.fail(message);                                                                    \
  } while (false)

} // namespace chute::eval

#pragma once

#include "aten/infer.h"
#include "aten/promotion.h"
#include "aten/shapes.h"
#include "ir/graph.h"
#include "support/result.h"

#include <string>
#include <string_view>
#include <type_traits>

namespace chute::aten {

/// What an inference rule sees of its operator, and where it puts its results.
///
/// The first error sticks: helpers report through it and return a harmless value, so a rule tests
/// `bad()` once before it indexes with what they gave.
class InferArgs {
public:
  InferArgs(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out);

  const ir::Op &op() const { return op_; }
  ir::Context &ctx() { return ctx_; }
  ir::SymTable &sym() { return ctx_.sym(); }

  // --- operands: `spec` is a position in the table's operand list ------------------------------
  /// Type of a present single operand.
  ir::Type tensor(u32 spec) const { return op_.arg(spec)->type(); }
  bool has(u32 spec) const { return op_.arg(spec) != nullptr; }
  /// Present types of a variadic operand; an absent element is an invalid Type.
  using TypeList = boost::container::small_vector<ir::Type, 8>;
  TypeList list(u32 spec) const;

  // --- attributes ------------------------------------------------------------------------------
  bool has_attr(std::string_view name) const { return !op_.attr(name).is_none(); }
  bool flag(std::string_view name) const;
  ir::SymInt integer(std::string_view name, ir::SymInt absent = 0) const;
  /// A literal integer below 2^31 in size; a symbolic or larger one is an error.
  i64 literal(std::string_view name, i64 absent = 0);
  double real(std::string_view name, double absent = 0) const;
  std::string_view text(std::string_view name) const;
  /// Empty when absent.
  DimSpan ints(std::string_view name) const;
  /// A list of `n` numbers; one number stands for n. Absent or empty: n times `absent`.
  Dims ints_n(std::string_view name, size_t n, ir::SymInt absent);
  /// The dtype attribute, or `absent`.
  ir::ElementType dtype(ir::ElementType absent, std::string_view name = "dtype") const;
  /// Non-negative dimension named by an attribute. `extra` widens the range (1 for unsqueeze).
  size_t dim(std::string_view name, int rank, i64 absent = 0);
  size_t wrap(ir::SymInt dim, int rank);
  /// One flag per dimension of `rank`: those in the list attribute or single integer `name`. Absent
  /// (or empty, unless `empty_is_none`) means all.
  using DimFlags = boost::container::small_vector<bool, 8>;
  DimFlags dim_flags(std::string_view name, int rank, bool empty_is_none = false);

  // --- shapes ----------------------------------------------------------------------------------
  /// Broadcast of all; an error names the shapes.
  Dims broadcast_all(std::span<const ir::Type> types);
  /// Replaces `into` by its broadcast with `shape`.
  void broadcast_into(Dims &into, DimSpan shape);
  std::string print(DimSpan shape) const;

  // --- outcome ---------------------------------------------------------------------------------
  /// `ok`; when false, the error. `message` is text, or a function that makes it only when needed.
  template <class Message>
  bool check(bool ok, std::string_view code, Message &&message) {
    if (!ok) {
      if constexpr (std::is_invocable_v<Message>)
        report(code, message());
      else
        report(code, message);
    }
    return ok;
  }
  bool bad() const { return bad_; }
  Status failed();
  /// Appends a result.
  void add(ir::Type t) { out_.push_back(t); }
  void add(ir::ElementType e, DimSpan shape);
  void add(ir::ElementType e, const Dims &shape) { add(e, span_of(shape)); }
  /// A tensor of the same elements in another shape; quantization stays when it is per tensor.
  void add_moved(ir::Type from, const Dims &shape);
  /// Ends a rule: one more result, or the error.
  Status done() { return bad_ ? failed() : Status{}; }
  Status done(ir::Type t);
  Status done(ir::ElementType e, DimSpan shape);
  Status done(ir::ElementType e, const Dims &shape) { return done(e, span_of(shape)); }
  Status done_moved(ir::Type from, const Dims &shape);
  Status data_dependent(std::string_view what);

private:
  void report(std::string_view code, std::string_view message);
  void check_sizes(DimSpan shape);

  const ir::Op &op_;
  ir::Context &ctx_;
  std::vector<ir::Type> &out_;
  bool bad_ = false;
  std::string code_;
  std::string message_;
};

inline constexpr std::string_view kOperandError = "aten.infer.operand";
inline constexpr std::string_view kShapeError = "aten.infer.shape";
inline constexpr std::string_view kDimError = "aten.infer.dim";
inline constexpr std::string_view kDtypeError = "aten.infer.dtype";
inline constexpr std::string_view kAttrError = "aten.infer.attr";

inline Dims dims_of(ir::Type t) { return Dims(t.shape().begin(), t.shape().end()); }

} // namespace chute::aten

#pragma once

#include "ir/builder.h"
#include "pass/constants.h"
#include "pass/rewriter.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

/// What the legalizations of every target share: reading the operator that is lowered, making
/// operators before it, refusing and replacing it.
namespace chute::pass {

/// Why an operator could not be lowered; reported after the run for those that are still there.
struct Refusal {
  std::string reason;
  std::string hint;
};

/// State of one run, behind Rewriter::user().
struct LegalizeState {
  boost::unordered_flat_map<u32, Refusal> refusals; // by operator id
};

/// One finding per kind of operator and reason, in order of first appearance, for every operator
/// that is still of a dialect other than core and the target's. `lowered` tells the target's
/// operators, `target` is "Circle" or "TOSA", `code` the finding's code.
void report_refusals(const ir::Graph &graph, const LegalizeState &state,
                     bool (*lowered)(ir::OpCode), std::string_view target, std::string_view code,
                     Diagnostics &diagnostics);

/// One operator being lowered.
class Lowering {
public:
  /// `dialect` prefixes the codes of errors ("circle.rule.type").
  Lowering(ir::Op &op, Rewriter &rw, std::string_view dialect)
      : op(op), rw(rw), b_(rw.before(op)), dialect_(dialect) {}

  ir::Op &op;
  Rewriter &rw;

  // --- reading
  ir::Value *arg(u32 i) const { return i < op.num_operands() ? op.operand(i) : nullptr; }
  ir::Type type(u32 i = 0) const { return op.result(i)->type(); }
  ir::ElementType element() const { return type().element(); }
  ir::Attr attr(std::string_view name) const { return op.attr(name); }
  i64 integer(std::string_view name) const { return attr(name).as_int().value(); }
  bool flag(std::string_view name) const {
    const ir::Attr a = attr(name);
    return !a.is_none() && a.as_bool();
  }
  /// A Scalar or Float attribute; `fallback` when it is None.
  double number(std::string_view name, double fallback = 0) const;
  /// A list of literals, widened to `n` entries when it has one.
  Dims ints(std::string_view name, size_t n = 0) const;
  /// True when every entry of that list is a literal.
  bool is_static(std::string_view name) const;
  ir::Context &context() const { return rw.context(); }
  ir::Graph &graph() const { return rw.graph(); }

  // --- emitting
  ir::Value *operator()(ir::OpCode code, std::initializer_list<ir::Value *> operands,
                        std::initializer_list<ir::NamedAttr> attrs = {});
  ir::Value *operator()(ir::OpCode code, std::span<ir::Value *const> operands,
                        std::span<const ir::NamedAttr> attrs = {});
  /// With the result types given (symbolic shapes, several results).
  ir::Op *typed(ir::OpCode code, std::span<ir::Value *const> operands,
                std::span<const ir::NamedAttr> attrs, std::span<const ir::Type> types);
  ir::Value *typed(ir::OpCode code, std::initializer_list<ir::Value *> operands,
                   std::initializer_list<ir::NamedAttr> attrs, ir::Type type);

  ir::Value *constant(const ir::Constant *c) { return b_.constant(c); }
  /// A dense constant of any element type from doubles.
  ir::Value *constant(ir::ElementType e, std::span<const i64> shape,
                      std::span<const double> values);
  ir::Value *constant_ints(ir::ElementType e, std::span<const i64> shape,
                           std::span<const i64> values);
  ir::Attr str(std::string_view s) const { return context().string_attr(s); }

  // --- ending
  /// Notes why this operator has no lowering; returns null.
  std::nullptr_t unsupported(std::string reason, std::string hint = {});
  /// Replaces the operator; false (and an error) when the value's type is not the one promised.
  bool finish(ir::Value *v) { return finish(std::span<ir::Value *const>(&v, 1)); }
  bool finish(std::span<ir::Value *const> values);

protected:
  ir::Builder b_;

private:
  template <class Store>
  ir::Value *dense(ir::ElementType e, std::span<const i64> shape, size_t n, Store &&store);

  std::string_view dialect_;
  bool failed_ = false; ///< an operator could not be made; the error is reported
};

inline ir::Attr of(bool v) { return ir::Attr::of_bool(v); }
inline ir::Attr of(i64 v) { return ir::Attr::of_int(v); }
inline ir::Attr of(double v) { return ir::Attr::of_float(v); }
inline ir::Attr of(ir::ElementType v) { return ir::Attr::of_element(v); }

} // namespace chute::pass

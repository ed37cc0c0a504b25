#pragma once

#include "aten/ops.h"
#include "circle/ops.h"
#include "ir/builder.h"
#include "pass/rewriter.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Helpers shared by the families of legalization rules. Internal to circle/legalize.
namespace chute::circle {

using ir::Attr;
using ir::ElementType;
using ir::NamedAttr;
using ir::OpCode;
using ir::SymInt;
using ir::Type;
using ir::Value;
using Dims = std::vector<i64>;
using SymDims = std::vector<SymInt>;

/// Why an operator could not be lowered; reported after the run for those that are still there.
struct Refusal {
  std::string reason;
  std::string hint;
};

/// State of one run, behind Rewriter::user().
struct LegalizeState {
  boost::unordered_flat_map<u32, Refusal> refusals; // by operator id
};

/// The constant that a value is, or null.
const ir::Constant *constant_of(const Value *v);
/// The only element of a constant that holds one value throughout (rank 0, one element, a splat of
/// few); nullopt otherwise.
std::optional<double> splat_of(const Value *v);
/// Elements of a small integer constant in row-major order; nullopt when `v` is no such constant.
std::optional<Dims> int_constant(const Value *v);

/// The constant with its axes permuted: a view of the same bytes.
const ir::Constant *permuted(ir::Graph &graph, const ir::Constant &c, std::span<const i64> perm);
/// The constant with another shape: a view when dense, else a dense copy.
const ir::Constant *reshaped(ir::Graph &graph, const ir::Constant &c,
                             std::span<const SymInt> shape);

/// Elements begin, begin + step, … below end of one axis: a view of the same bytes.
const ir::Constant *sliced(ir::Graph &graph, const ir::Constant &c, i64 axis, i64 begin, i64 end,
                           i64 step);

/// The static dimensions of a tensor; only with a static shape.
Dims static_dims(Type t);
inline Dims static_dims(const Value *v) { return static_dims(v->type()); }
bool is_identity(std::span<const i64> perm);
Dims inverse(std::span<const i64> perm);

/// One operator being lowered: reads its operands and attributes, emits Circle operators before it.
/// A lowering returns the value that replaces the result, or null after `unsupported`.
class Emit {
public:
  Emit(ir::Op &op, pass::Rewriter &rw) : op(op), rw(rw), b_(rw.before(op)) {}

  ir::Op &op;
  pass::Rewriter &rw;

  // --- reading
  Value *arg(u32 i) const { return i < op.num_operands() ? op.operand(i) : nullptr; }
  Type type(u32 i = 0) const { return op.result(i)->type(); }
  ElementType element() const { return type().element(); }
  Attr attr(std::string_view name) const { return op.attr(name); }
  i64 integer(std::string_view name) const { return attr(name).as_int().value(); }
  bool flag(std::string_view name) const {
    const Attr a = attr(name);
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
  Value *operator()(OpCode code, std::initializer_list<Value *> operands,
                    std::initializer_list<NamedAttr> attrs = {});
  Value *operator()(OpCode code, std::span<Value *const> operands,
                    std::span<const NamedAttr> attrs = {});
  /// With the result types given (symbolic shapes, several results).
  ir::Op *typed(OpCode code, std::span<Value *const> operands, std::span<const NamedAttr> attrs,
                std::span<const Type> types);
  Value *typed(OpCode code, std::initializer_list<Value *> operands,
               std::initializer_list<NamedAttr> attrs, Type type);

  Value *i32(i64 v);                   ///< rank 0
  Value *i32s(std::span<const i64> v); ///< rank 1
  Value *i32s(std::initializer_list<i64> v) {
    return i32s(std::span<const i64>(v.begin(), v.size()));
  }
  /// Shape [rows, 2] (paddings).
  Value *i32_pairs(std::span<const i64> flat);
  Value *scalar(ElementType e, double v) { return b_.scalar(e, v); }
  Value *like(const Value *v, double x) { return scalar(v->type().element(), x); }
  Value *constant(const ir::Constant *c) { return b_.constant(c); }
  /// A dense constant of any element type from doubles.
  Value *constant(ElementType e, std::span<const i64> shape, std::span<const double> values);
  Value *constant_ints(ElementType e, std::span<const i64> shape, std::span<const i64> values);

  Value *add(Value *x, Value *y, std::string_view activation = "NONE");
  Value *sub(Value *x, Value *y);
  Value *mul(Value *x, Value *y);
  Value *div(Value *x, Value *y);
  Value *cast(Value *x, ElementType to); ///< `x` itself when it has that type
  Value *select(Value *c, Value *x, Value *y);
  Value *as_bool(Value *x);
  Value *transpose(Value *x, std::span<const i64> perm); ///< folds constants and identities
  Value *transpose(Value *x, std::initializer_list<i64> perm) {
    return transpose(x, std::span<const i64>(perm.begin(), perm.size()));
  }
  /// Null after `unsupported` when more than one dimension can not be told from `x`.
  Value *reshape(Value *x, std::span<const SymInt> shape);
  Value *reshape(Value *x, const Dims &shape) {
    const SymDims s(shape.begin(), shape.end());
    return reshape(x, std::span<const SymInt>(s));
  }
  /// begin <= i < end with step 1 along one axis.
  Value *slice(Value *x, i64 axis, i64 begin, i64 end, i64 step = 1);
  Value *slices(Value *x, const Dims &begin, const Dims &end, const Dims &steps);
  /// PAD, or PADV2 for another value; pairs (before, after) per dimension; `x` itself when all are
  /// zero.
  Value *pad(Value *x, const Dims &pairs, std::optional<double> value = {});
  Value *reduce(OpCode code, Value *x, const Dims &axes, bool keep);
  Value *concat(std::span<Value *const> parts, i64 axis);
  /// A rank-1 i32 value holding `shape`; dimensions that are symbolic are read from one of
  /// `sources`. At most one unknown dimension becomes -1 when `infer_one`. Null when it can not be
  /// had.
  Value *shape_operand(std::span<const SymInt> shape, std::initializer_list<Value *> sources,
                       bool infer_one);

  Attr str(std::string_view s) const { return context().string_attr(s); }

  // --- ending
  /// Notes why this operator has no lowering; returns null.
  std::nullptr_t unsupported(std::string reason, std::string hint = {});
  /// Replaces the operator; false (and an error) when the value's type is not the one promised.
  bool finish(Value *v) { return finish(std::span<Value *const>(&v, 1)); }
  bool finish(std::span<Value *const> values);

private:
  ir::Builder b_;
  bool failed_ = false; ///< an operator could not be made; the error is reported
};

using LowerFn = Value *(*)(Emit &);
template <LowerFn fn>
bool lower(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  Value *v = fn(e);
  return v && e.finish(v);
}

/// For operators with several results: one value per result, null where it is unused; empty:
/// refused.
using LowerManyFn = std::vector<Value *> (*)(Emit &);
template <LowerManyFn fn>
bool lower_many(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  const std::vector<Value *> v = fn(e);
  return !v.empty() && e.finish(v);
}

inline Attr of(bool v) { return Attr::of_bool(v); }
inline Attr of(i64 v) { return Attr::of_int(v); }
inline Attr of(double v) { return Attr::of_float(v); }
inline Attr of(ElementType v) { return Attr::of_element(v); }

void add_elementwise_rules(pass::PatternSet &set);
void add_math_rules(pass::PatternSet &set);
void add_reduction_rules(pass::PatternSet &set);
void add_matmul_rules(pass::PatternSet &set);
void add_conv_rules(pass::PatternSet &set);
void add_pool_rules(pass::PatternSet &set);
void add_norm_rules(pass::PatternSet &set);
void add_movement_rules(pass::PatternSet &set);
void add_indexing_rules(pass::PatternSet &set);
void add_scatter_rules(pass::PatternSet &set);
void add_resize_rules(pass::PatternSet &set);

/// Row-major element strides of a static shape.
Dims strides_of(const Dims &shape);

} // namespace chute::circle

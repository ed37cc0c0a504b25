#pragma once

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/context.h"
#include "ir/sym_table.h"
#include "pass/rewriter.h"

#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

/// A small language for decompositions: `e.mul(x, e.sigmoid(x))` inserts before the operator that a
/// rule was shown. Every method returns a value whose type was inferred; the first failure (an
/// attribute that has to be static, operands that do not fit) is kept, the rest of the rule then
/// computes nothing, and the whole rewrite is undone.
namespace chute::aten {

using V = ir::Value *;
using Values = std::vector<V>;
using Shape = std::vector<ir::SymInt>;
using Axes = std::vector<int>;
using ir::Attr;
using ir::ElementType;
using ir::SymInt;

class Emit {
public:
  Emit(ir::Op &op, pass::Rewriter &rw);
  Emit(const Emit &) = delete;
  Emit &operator=(const Emit &) = delete;

  // --- what the operator says -------------------------------------------------------------------
  ir::Op &root() const { return op_; }
  ir::Context &ctx() const { return rw_.context(); }
  ir::SymTable &sym() const { return ctx().sym(); }
  /// Operand by its position in the table; null when absent.
  V in(u32 spec = 0) const { return op_.arg(spec); }
  /// The operands of a variadic position.
  Values list(u32 spec) const;
  Attr attr(std::string_view name) const { return op_.attr(name); }
  bool given(std::string_view name) const { return !attr(name).is_none(); }
  bool flag(std::string_view name) const;
  double number(std::string_view name) const;
  SymInt size(std::string_view name) const { return attr(name).as_int(); }
  i64 integer(std::string_view name);
  /// A dimension, wrapped into [0, rank).
  int dim(std::string_view name, int rank) const;
  int wrap(i64 dim, int rank) const;
  /// Static integers; with `count`, a single one stands for all of them.
  std::vector<i64> ints(std::string_view name, size_t count = 0);
  Shape sizes(std::string_view name) const;
  /// Dimensions wrapped and sorted; None and the empty list mean all of them.
  Axes dims(std::string_view name, int rank) const;
  Axes all_dims(int rank) const;
  ir::Type type(u32 result = 0) const { return op_.result(result)->type(); }
  Shape shape(u32 result = 0) const;
  bool used(u32 result) const { return op_.result(result)->has_uses(); }

  // --- not a match -------------------------------------------------------------------------------
  /// `return e.reject("why")`: leaves the operator as it is.
  std::nullptr_t reject(std::string_view why);
  bool failed() const { return failed_; }
  /// Replaces the operator. Element types that differ from the recorded ones are cast back (the way
  /// back of an upcast body); shapes that differ undo the rewrite and report a fault of the rule.
  bool done(const Values &values);

  // --- operators
  // ----------------------------------------------------------------------------------
  V op(ir::OpCode code, std::initializer_list<V> operands,
       std::initializer_list<ir::NamedAttr> attrs = {});
  V op(ir::OpCode code, const Values &operands, std::initializer_list<ir::NamedAttr> attrs = {});
  ir::Op *multi(ir::OpCode code, const Values &operands,
                std::initializer_list<ir::NamedAttr> attrs = {});
  /// Elementwise with the operands cast to their common element type.
  V binary(ir::OpCode code, V a, V b);

  V scalar(double value, ElementType element);
  V scalar(Attr value, ElementType element);
  V scalar_like(double value, V like) { return scalar(value, like->type().element()); }
  V i64s(const std::vector<i64> &values);
  /// A dense constant; `values` are converted to the element type.
  V constant(ElementType element, const std::vector<i64> &shape, const std::vector<double> &values);
  V full(const Shape &shape, double value, ElementType element);
  V full(const Shape &shape, Attr value, ElementType element);
  V arange(SymInt start, SymInt end, ElementType element = ElementType::I64);

  V cast(V x, ElementType element);
  /// f16 and bf16 to f32; anything else as it is.
  V up(V x);
  /// Integers and bools to the default float.
  V to_float(V x);

  V neg(V x) { return op(op::neg, {x}); }
  V abs(V x) { return op(op::abs, {x}); }
  V exp(V x) { return op(op::exp, {x}); }
  V expm1(V x) { return op(op::expm1, {x}); }
  V log(V x) { return op(op::log, {x}); }
  V log1p(V x) { return op(op::log1p, {x}); }
  V sqrt(V x) { return op(op::sqrt, {x}); }
  V rsqrt(V x) { return op(op::rsqrt, {x}); }
  V reciprocal(V x) { return op(op::reciprocal, {x}); }
  V sigmoid(V x) { return op(op::sigmoid, {x}); }
  V tanh(V x) { return op(op::tanh, {x}); }
  V relu(V x) { return op(op::relu, {x}); }
  V relu6(V x) { return op(op::relu6, {x}); }
  V sign(V x) { return op(op::sign, {x}); }
  V trunc(V x) { return op(op::trunc, {x}); }
  V lnot(V x) { return op(op::logical_not, {x}); }

  V add(V a, V b) { return binary(op::add_Tensor, a, b); }
  V sub(V a, V b) { return binary(op::sub_Tensor, a, b); }
  V mul(V a, V b) { return binary(op::mul_Tensor, a, b); }
  V div(V a, V b) { return binary(op::div_Tensor, a, b); }
  V pow(V a, V b) { return binary(op::pow_Tensor_Tensor, a, b); }
  V maximum(V a, V b) { return binary(op::maximum, a, b); }
  V minimum(V a, V b) { return binary(op::minimum, a, b); }
  V add(V a, double b) { return add(a, scalar_like(b, a)); }
  V sub(V a, double b) { return sub(a, scalar_like(b, a)); }
  V mul(V a, double b) { return b == 1.0 ? a : mul(a, scalar_like(b, a)); }
  V div(V a, double b) { return b == 1.0 ? a : div(a, scalar_like(b, a)); }
  V pow(V a, double b) { return pow(a, scalar_like(b, a)); }
  V maximum(V a, double b) { return maximum(a, scalar_like(b, a)); }
  V minimum(V a, double b) { return minimum(a, scalar_like(b, a)); }
  V rsub(double a, V b) { return sub(scalar_like(a, b), b); }
  V div_floor(V a, V b);
  V eq(V a, V b) { return binary(op::eq_Tensor, a, b); }
  V ne(V a, V b) { return binary(op::ne_Tensor, a, b); }
  V lt(V a, V b) { return binary(op::lt_Tensor, a, b); }
  V le(V a, V b) { return binary(op::le_Tensor, a, b); }
  V gt(V a, V b) { return binary(op::gt_Tensor, a, b); }
  V ge(V a, V b) { return binary(op::ge_Tensor, a, b); }
  V eq(V a, double b) { return eq(a, scalar_like(b, a)); }
  V ne(V a, double b) { return ne(a, scalar_like(b, a)); }
  V lt(V a, double b) { return lt(a, scalar_like(b, a)); }
  V le(V a, double b) { return le(a, scalar_like(b, a)); }
  V gt(V a, double b) { return gt(a, scalar_like(b, a)); }
  V ge(V a, double b) { return ge(a, scalar_like(b, a)); }
  V land(V a, V b) { return binary(op::logical_and, a, b); }
  V lor(V a, V b) { return binary(op::logical_or, a, b); }
  V where(V condition, V a, V b);
  V where(V condition, V a, double b) { return where(condition, a, scalar_like(b, a)); }

  V view(V x, const Shape &shape);
  V permute(V x, const Axes &order);
  V transpose(V x, int a, int b);
  V expand(V x, const Shape &shape);
  /// Python's slice: bounds are wrapped and clamped; the whole range is `x` itself.
  V slice(V x, int dim, SymInt start, SymInt end, i64 step = 1);
  V select(V x, int dim, SymInt index);
  V unsqueeze(V x, int dim);
  V squeeze(V x, int dim);
  V cat(const Values &values, int dim);
  Values split(V x, const Shape &sizes, int dim);
  V flip(V x, const Axes &dims);
  /// Leading and trailing amounts per dimension, last dimension first (torch's order); negative
  /// ones crop.
  V pad(V x, std::vector<i64> amounts, Attr value);
  V index_select(V x, int dim, V index);

  V sum(V x, const Axes &dims, bool keep) { return reduce(op::sum_dim_IntList, x, dims, keep); }
  V mean(V x, const Axes &dims, bool keep) { return reduce(op::mean_dim, x, dims, keep); }
  V amax(V x, const Axes &dims, bool keep) { return reduce(op::amax, x, dims, keep); }
  V amin(V x, const Axes &dims, bool keep) { return reduce(op::amin, x, dims, keep); }
  V any(V x, const Axes &dims, bool keep) { return reduce(op::any_dims, to_bool(x), dims, keep); }
  V all(V x, const Axes &dims, bool keep) { return reduce(op::all_dims, to_bool(x), dims, keep); }
  V to_bool(V x);
  V softmax(V x, int dim);
  V log_softmax(V x, int dim);
  V matmul(V a, V b) { return op(op::matmul, {a, b}); }
  V linear(V x, V w, V bias);

  Shape shape_of(V x) const;
  SymInt mul_sizes(const Shape &sizes) const;

private:
  V reduce(ir::OpCode code, V x, const Axes &dims, bool keep);
  V dummy() const;
  void undo();

  ir::Op &op_;
  pass::Rewriter &rw_;
  ir::Builder builder_;
  ir::Op *mark_; // the operator before the first one made here
  bool failed_ = false;
};

/// Adapts a rule to the rewriter: `set.add("silu", {op::silu}, rule<[](Emit &e) { … }>)`. The rule
/// returns the value (or one value per result) that replaces the operator, or null for no match.
template <auto Rule>
bool rule(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  if constexpr (std::is_same_v<decltype(Rule(e)), Values>) {
    const Values values = Rule(e);
    return e.done(values);
  } else {
    V value = Rule(e);
    return e.done(value ? Values{value} : Values{});
  }
}

/// The element type of a binary operation over these two values by torch's promotion rules.
ElementType common_element(V a, V b);

} // namespace chute::aten

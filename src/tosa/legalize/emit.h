#pragma once

#include "aten/ops.h"
#include "pass/lowering.h"
#include "tosa/ops.h"

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

/// Helpers shared by the families of legalization rules. Internal to tosa/legalize.
namespace chute::tosa {

using ir::Attr;
using ir::ElementType;
using ir::NamedAttr;
using ir::OpCode;
using ir::SymInt;
using ir::Type;
using ir::Value;
using pass::Dims;
using pass::LegalizeState;
using pass::SymDims;

using pass::constant_of;
using pass::int_constant;
using pass::inverse;
using pass::is_identity;
using pass::of;
using pass::permuted;
using pass::reshaped;
using pass::sliced;
using pass::splat_of;
using pass::static_dims;
using pass::strides_of;

/// One operator being lowered: reads its operands and attributes, emits TOSA operators before it.
/// A lowering returns the value that replaces the result, or null after `unsupported`.
///
/// Shapes are static here. Constants fold into views of themselves where an operator only moves
/// elements.
class Emit : public pass::Lowering {
public:
  Emit(ir::Op &op, pass::Rewriter &rw) : Lowering(op, rw, "tosa") {}

  // --- constants
  Value *shape(std::span<const i64> dims);
  Value *shape(std::initializer_list<i64> dims) {
    return shape(std::span<const i64>(dims.begin(), dims.size()));
  }
  /// One number in a tensor of `rank` dimensions of size 1.
  Value *number_of(ElementType e, double v, int rank);
  using Lowering::number;
  /// ... with the element type and rank of `x`.
  Value *like(const Value *x, double v) {
    return number_of(x->type().element(), v, x->type().rank());
  }
  /// Shape [1]: zero points, the shift of MUL, the value of PAD.
  Value *single(ElementType e, double v) { return number_of(e, v, 1); }
  Value *i32s(std::span<const i64> shape, std::span<const i64> v) {
    return constant_ints(ElementType::I32, shape, v);
  }

  // --- elementwise
  Value *unary(OpCode code, Value *x) { return (*this)(code, {x}); }
  /// Operands of lower rank get leading dimensions of size 1.
  Value *binary(OpCode code, Value *x, Value *y);
  Value *add(Value *x, Value *y) { return binary(op::ADD, x, y); }
  Value *sub(Value *x, Value *y) { return binary(op::SUB, x, y); }
  /// Of 8- and 16-bit integers the result is i32.
  Value *mul(Value *x, Value *y);
  /// Floats: by the reciprocal (of a constant at compile time). Integers: INTDIV, towards zero.
  Value *div(Value *x, Value *y);
  Value *add(Value *x, double v) { return add(x, like(x, v)); }
  Value *sub(Value *x, double v) { return sub(x, like(x, v)); }
  Value *mul(Value *x, double v) { return v == 1 ? x : mul(x, like(x, v)); }
  Value *equal(Value *x, Value *y) { return binary(op::EQUAL, x, y); }
  Value *greater(Value *x, Value *y) { return binary(op::GREATER, x, y); }
  Value *greater_equal(Value *x, Value *y) { return binary(op::GREATER_EQUAL, x, y); }
  Value *greater(Value *x, double v) { return greater(x, like(x, v)); }
  Value *greater_equal(Value *x, double v) { return greater_equal(x, like(x, v)); }
  Value *equal(Value *x, double v) { return equal(x, like(x, v)); }
  Value *negative(Value *x) { return greater(like(x, 0), x); }
  Value *lnot(Value *x) { return unary(op::LOGICAL_NOT, x); }
  Value *neg(Value *x);
  /// Integers by a number of bits; to the right the sign stays.
  Value *shift_right(Value *x, i64 bits);
  Value *shift_left(Value *x, i64 bits);
  /// 1 for negative i32, else 0. Both profiles have it, unlike comparisons.
  Value *sign_bit(Value *x);
  Value *clamp(Value *x, double low, double high);
  Value *cast(Value *x, ElementType to); ///< `x` itself when it has that type
  Value *as_bool(Value *x);
  Value *select(Value *c, Value *x, Value *y);
  /// I8, I16 and Bool as I32: what arithmetic and comparisons take.
  Value *widened(Value *x);

  // --- movement
  Value *transpose(Value *x, std::span<const i64> perm); ///< folds constants and identities
  Value *transpose(Value *x, std::initializer_list<i64> perm) {
    return transpose(x, std::span<const i64>(perm.begin(), perm.size()));
  }
  Value *reshape(Value *x, std::span<const i64> shape);
  Value *reshape(Value *x, const Dims &shape) { return reshape(x, std::span<const i64>(shape)); }
  Value *reshape(Value *x, std::initializer_list<i64> shape) {
    return reshape(x, std::span<const i64>(shape.begin(), shape.size()));
  }
  /// Leading dimensions of size 1 up to `rank`.
  Value *with_rank(Value *x, int rank);
  /// begin <= i < end along one axis, every `step`-th.
  Value *slice(Value *x, i64 axis, i64 begin, i64 end, i64 step = 1);
  /// Pairs (before, after) per dimension; `x` itself when all are zero.
  Value *pad(Value *x, const Dims &pairs, double value = 0);
  Value *concat(std::span<Value *const> parts, i64 axis);
  Value *tile(Value *x, const Dims &times);
  /// Broadcast to `shape`, of the same rank or higher.
  Value *broadcast(Value *x, const Dims &shape);
  /// values [N, K, C] at indices [N, W] of i32.
  Value *gather(Value *values, Value *indices);

  // --- reductions and products
  /// Keeps the axes. Axes of size 1 cost nothing.
  Value *reduce(OpCode code, Value *x, const Dims &axes);
  /// [N, R, K] by [N, K, C], in the element type of `a`.
  Value *matmul(Value *a, Value *b);

private:
  /// A constant cast at compile time, as torch casts.
  Value *converted(const ir::Constant &c, ElementType to);
};

using LowerFn = Value *(*)(Emit &);
/// Refuses shapes that are known only at run time.
bool has_static_types(Emit &e);

template <LowerFn fn>
bool lower(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  if (!has_static_types(e))
    return false;
  Value *v = fn(e);
  return v && e.finish(v);
}

/// For operators with several results: one value per result, null where it is unused; empty:
/// refused.
using LowerManyFn = std::vector<Value *> (*)(Emit &);
template <LowerManyFn fn>
bool lower_many(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  if (!has_static_types(e))
    return false;
  const std::vector<Value *> v = fn(e);
  return !v.empty() && e.finish(v);
}

inline bool is_bool(const Value *v) { return v->type().element() == ElementType::Bool; }
inline bool is_float(const Value *v) { return ir::is_float(v->type().element()); }
inline i64 wrapped_dim(i64 d, i64 rank) { return d < 0 ? d + rank : d; }
i64 product(std::span<const i64> dims);

inline constexpr std::initializer_list<i64> kToNhwc = {0, 2, 3, 1};
inline constexpr std::initializer_list<i64> kToNchw = {0, 3, 1, 2};

void add_elementwise_rules(pass::PatternSet &set);
void add_activation_rules(pass::PatternSet &set);
void add_reduction_rules(pass::PatternSet &set);
void add_matmul_rules(pass::PatternSet &set);
void add_conv_rules(pass::PatternSet &set);
void add_pool_rules(pass::PatternSet &set);
void add_norm_rules(pass::PatternSet &set);
void add_movement_rules(pass::PatternSet &set);
void add_indexing_rules(pass::PatternSet &set);
void add_scatter_rules(pass::PatternSet &set);
void add_resize_rules(pass::PatternSet &set);
void add_control_rules(pass::PatternSet &set);
void add_block_scaled_rules(pass::PatternSet &set);

} // namespace chute::tosa

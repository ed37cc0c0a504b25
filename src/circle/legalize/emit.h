#pragma once

#include "aten/ops.h"
#include "circle/legalize/sizes.h"
#include "circle/ops.h"
#include "pass/lowering.h"

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
using pass::Dims;
using pass::SymDims;

using pass::constant_of;
using pass::int_constant;
using pass::inverse;
using pass::is_identity;
using pass::LegalizeState;
using pass::permuted;
using pass::reshaped;
using pass::sliced;
using pass::splat_of;
using pass::static_dims;
using pass::strides_of;

/// State of one run.
struct CircleState : LegalizeState {
  SizeSources sizes;
};

/// One operator being lowered: reads its operands and attributes, emits Circle operators before it.
/// A lowering returns the value that replaces the result, or null after `unsupported`.
class Emit : public pass::Lowering {
public:
  Emit(ir::Op &op, pass::Rewriter &rw) : Lowering(op, rw, "circle") {}

  Value *i32(i64 v);                   ///< rank 0
  Value *i32s(std::span<const i64> v); ///< rank 1
  Value *i32s(std::initializer_list<i64> v) {
    return i32s(std::span<const i64>(v.begin(), v.size()));
  }
  /// Shape [rows, 2] (paddings).
  Value *i32_pairs(std::span<const i64> flat);
  Value *scalar(ElementType e, double v) { return b_.scalar(e, v); }
  Value *like(const Value *v, double x) { return scalar(v->type().element(), x); }

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
  /// `stored` has the parameters.
  Value *quantize(Value *x, Type stored) { return typed(op::QUANTIZE, {x}, {}, stored); }
  Value *dequantize(Value *q) {
    return typed(op::DEQUANTIZE, {q}, {},
                 context().tensor_type(ElementType::F32, q->type().shape()));
  }
  Value *reduce(OpCode code, Value *x, const Dims &axes, bool keep);
  Value *concat(std::span<Value *const> parts, i64 axis);
  /// begin <= i < end along one axis with bounds that may be symbolic or negative, clamped as
  /// torch does; `size` is the result's. Null when a bound can not be had at run time.
  Value *slice_between(Value *x, i64 axis, SymInt begin, SymInt end, i64 step, SymInt size);

  // Sizes at run time (sizes.cpp). Each is null when a symbol can not be read anywhere.
  /// [1] of i32.
  Value *size_value(SymInt e, int depth = 0);
  /// Rank 0.
  Value *size_scalar(SymInt e, ElementType element);
  Value *shape_of(Value *x); ///< SHAPE, i32
  /// A rank-1 i32 value holding `sizes`. `sources`: values that have such dimensions, besides the
  /// arguments.
  Value *sizes_operand(std::span<const SymInt> sizes, std::initializer_list<Value *> sources = {});
  /// The same for a target shape, in which -1 may stand for one dimension when `infer_one`.
  Value *shape_operand(std::span<const SymInt> shape, std::initializer_list<Value *> sources,
                       bool infer_one);

private:
  const SizeSources &size_sources() const {
    return static_cast<CircleState *>(static_cast<LegalizeState *>(rw.user()))->sizes;
  }
  Value *symbol_value(SymInt symbol);
  Value *atom_value(SymInt e, int depth);
  Value *size_literal(i64 v) { return rank0_ ? i32(v) : i32s({v}); }

  bool rank0_ = false; ///< sizes are computed as rank 0 instead of [1]
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

using pass::of;

void add_elementwise_rules(pass::PatternSet &set);
void add_bit_rules(pass::PatternSet &set);
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
void add_quantize_rules(pass::PatternSet &set);
void add_mx_rules(pass::PatternSet &set);
void add_number_rules(pass::PatternSet &set);

} // namespace chute::circle

#pragma once

#include "circle/passes/match.h"

#include <optional>

/// The families of local rewrites of Circle programs. Each is a pass of its own (circle/passes.def)
/// and all of them share the worklist of `optimize-circle`. Internal to circle/passes.
///
/// What every rule keeps: the interface, the element type and quantization of every value that
/// survives, and the numbers. "Exact" in a rule's comment means bit for bit (the sign of a zero
/// apart); otherwise the comment states the bound.
namespace chute::circle {

void add_canonical_rules(pass::PatternSet &set);
void add_identity_rules(pass::PatternSet &set);
void add_view_rules(pass::PatternSet &set);
void add_rank_rules(pass::PatternSet &set);
void add_transpose_rules(pass::PatternSet &set);
void add_transposed_view_rules(pass::PatternSet &set);
void add_slice_rules(pass::PatternSet &set);
void add_arithmetic_rules(pass::PatternSet &set);
void add_reduce_rules(pass::PatternSet &set);
void add_channel_rules(pass::PatternSet &set);
void add_linear_rules(pass::PatternSet &set);
void add_activation_rules(pass::PatternSet &set);
void add_composite_rules(pass::PatternSet &set);
void add_sigmoid_rules(pass::PatternSet &set);
void add_legacy_gelu_rules(pass::PatternSet &set);
void add_custom_rules(pass::PatternSet &set);
void add_part_view_rules(pass::PatternSet &set);
void add_layout_region_rules(pass::PatternSet &set);
void add_requantize_rules(pass::PatternSet &set);
void add_table_rules(pass::PatternSet &set);
void add_parallel_rules(pass::PatternSet &set);

// --- types ---------------------------------------------------------------------------------------

/// No quantization, or one scale for the whole tensor: positions carry no meaning.
inline bool is_movable(Type t) { return !t.quant() || t.quant()->kind == ir::QuantKind::PerTensor; }
/// Values of both types are stored alike, whatever their shapes.
inline bool stored_alike(Type a, Type b) {
  return a.element() == b.element() && a.quant() == b.quant() && is_movable(a);
}
inline bool is_f32(Type t) { return t.element() == ElementType::F32 && !t.quant(); }
inline bool is_f32(const Value *v) { return v && is_f32(v->type()); }
inline bool same_shape(Type a, Type b) {
  const std::span<const SymInt> x = a.shape(), y = b.shape();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin());
}

// --- constants -----------------------------------------------------------------------------------

/// The constant that a value is, when its bytes can be computed with; null otherwise (sparse ones
/// and the like are only handed on).
inline const ir::Constant *data_of(const Value *v) {
  const ir::Constant *c = constant_of(v);
  return c && c->has_data ? c : nullptr;
}

/// Elements of an integer constant of at most `most` elements; nullopt otherwise. Cheap to ask.
std::optional<Dims> small_ints(const Value *v, i64 most = 64);
/// The one number that a constant of at most 64 elements holds throughout, as the program means it:
/// stored numbers of quantized types are turned into real ones.
std::optional<double> real_splat(const Value *v);
/// Floats of an f32 constant without quantization; nullopt when `v` is none, when it has more than
/// `most` elements, or when one of them is not finite.
std::optional<std::vector<float>> floats(const Value *v, i64 most);
/// One float per index of the last dimension from a constant that varies along it at most.
std::optional<std::vector<float>> per_last(const Value *v, size_t channels);
Value *f32_constant(pass::Rewriter &rw, ir::Op &before, Type type, std::span<const float> values);

/// Whether a rewrite may replace this constant by another: it is then stored twice if something
/// else uses it, which only small ones may.
inline bool may_duplicate(const Value *constant) {
  constexpr i64 kSmall = 4096;
  return constant->has_one_use() || constant->type().num_elements() <= kSmall;
}

// --- operators -----------------------------------------------------------------------------------

/// `v`'s producer when it is that operator.
inline ir::Op *made_by(const Value *v, OpCode code) {
  ir::Op *p = v ? v->producer() : nullptr;
  return p && p->opcode() == code ? p : nullptr;
}
/// ... and nothing else uses `v`.
inline ir::Op *made_for_one(const Value *v, OpCode code) {
  ir::Op *p = made_by(v, code);
  return p && v->has_one_use() ? p : nullptr;
}
/// The shape that a binary operator broadcasts to; nullopt when it can not be told.
std::optional<SymDims> broadcast(std::span<const SymInt> a, std::span<const SymInt> b);
/// Replaces `op` by `x`, or by a RESHAPE of `x` where shapes differ. False when a run-time shape
/// can not be stated.
bool replace_by_view(ir::Op &op, pass::Rewriter &rw, Value *x);
/// A unary or binary operator over `operands` with the type of `op`'s result, before `op`.
Value *make(pass::Rewriter &rw, ir::Op &op, OpCode code, std::initializer_list<Value *> operands,
            std::initializer_list<ir::NamedAttr> attrs = {});
/// Operators of the dialect that have all of these traits.
std::vector<OpCode> circle_ops(ir::trait::Set traits);

} // namespace chute::circle

#pragma once

#include "ir/graph.h"

#include <optional>
#include <span>
#include <vector>

/// Affine quantization as arithmetic, for every dialect: real = scale * (stored - zero_point).
///
/// A stored value is clamp(round(real * (1 / scale)) + zero_point, min, max) with ties to even, in
/// f32, as PyTorch computes fake-quantize (the reciprocal decides ties differently from a
/// division).
namespace chute::quant {

using ir::ElementType;
using ir::Quantization;

/// Whole numbers that a stored value may take, both included.
struct Range {
  i64 min = 0;
  i64 max = 0;
  bool holds(i64 v) const { return v >= min && v <= max; }
  bool holds(Range r) const { return min <= r.min && r.max <= max; }
  friend bool operator==(const Range &, const Range &) = default;
};

/// Everything that an integer element type holds: u4 i4 u8 i8 u16 i16 i32 i64; nullopt for others.
std::optional<Range> range_of(ElementType t);
/// The smallest of u4 i4 u8 i8 u16 i16 i32 that holds the range; nullopt when none does.
std::optional<ElementType> storage_for(Range r);

/// Parameters with one scale. `scale` must be positive and finite.
const Quantization *per_tensor(ir::Context &ctx, float scale, i64 zero_point);
/// The type's shape with that storage.
ir::Type stored_type(ir::Context &ctx, ir::Type real, ElementType storage, const Quantization *q);

/// Whether a tensor is stored as integers with affine parameters.
inline bool is_affine(ir::Type t) {
  return t.is_tensor() && t.quant() &&
         (t.quant()->kind == ir::QuantKind::PerTensor ||
          t.quant()->kind == ir::QuantKind::PerChannel) &&
         ir::is_integer(t.element());
}
/// Blocks of microscaling elements.
inline bool is_mx(ir::Type t) {
  return t.is_tensor() && t.quant() && t.quant()->kind == ir::QuantKind::MX;
}
inline bool is_per_tensor(ir::Type t) {
  return is_affine(t) && t.quant()->kind == ir::QuantKind::PerTensor;
}

/// The real numbers of a constant in row-major order: floats as they are, affine integers
/// dequantized. Empty when it has no data or is of another kind.
std::vector<float> real_values(const ir::Constant &c);

/// A constant of the affine type `to` with the given numbers, each clamped to `clamp` (the type's
/// whole range when absent). `values` has one number per element in row-major order.
const ir::Constant *quantize_values(ir::Graph &graph, std::span<const float> values, ir::Type to,
                                    std::optional<Range> clamp = {});
/// The same from a constant, without copying its numbers first where it is dense f32. Null when it
/// has no data or is not of real numbers.
const ir::Constant *quantize_constant(ir::Graph &graph, const ir::Constant &c, ir::Type to,
                                      std::optional<Range> clamp = {});
/// The f32 constant of an affine one.
const ir::Constant *dequantize_constant(ir::Graph &graph, const ir::Constant &c);

/// How the numbers of an operand that the model's author gave no parameters may be stored.
struct Fit {
  float scale = 1;
  i64 zero_point = 0;
  double error = 0; ///< largest |stored - real|, in reals
  double bound = 0; ///< largest |real|
  /// No rounding but that of f32: all numbers lie on the grid.
  bool exact() const { return error <= bound * 2e-6; }
};
/// Symmetric parameters for signed types and for constants of one sign in unsigned ones
/// (zero point 0 or the middle), chosen so that the largest magnitude is stored exactly.
/// nullopt when a number is not finite or the type is none of u8 i8 i16.
std::optional<Fit> fit(std::span<const float> values, ElementType storage);

/// Parameters under which every value of `from` can be stored in the signed or unsigned type `to`
/// without any loss: the same scale with a shifted zero point. Null when it does not fit.
const Quantization *widened(ir::Context &ctx, ir::Type from, ElementType to);
/// Parameters of type `to` that cover the range of reals of `from` (per tensor), zero point 0 for
/// i16.
const Quantization *covering(ir::Context &ctx, ir::Type from, ElementType to);

} // namespace chute::quant

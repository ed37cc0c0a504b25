#pragma once

#include "tosa/legalize/emit.h"

#include <optional>
#include <span>
#include <vector>

/// Rules that turn TOSA operators between dequantize and quantize operators (ATen's, which
/// legalization leaves in place) into operators on stored integers. Internal to tosa/quant.
///
/// real = scale * (stored - zero_point). What a rule cannot express stays as it is, and is refused
/// when the pass has ended.
namespace chute::tosa {

/// A real tensor that is the dequantization of a stored one, with one scale.
struct Stored {
  Value *value = nullptr;
  const ir::Op *dequantize = nullptr;
  double scale = 1;
  i64 zero_point = 0;

  ElementType element() const { return value->type().element(); }
  bool same_grid(const Stored &o) const {
    return scale == o.scale && zero_point == o.zero_point && element() == o.element();
  }
};
/// nullopt when `v` is not dequantized, or with one scale per channel.
std::optional<Stored> stored_of(const Value *v);

/// The same with one scale, or one per index of `axis`, and one zero point.
struct Weights {
  Value *value = nullptr;
  std::vector<double> scales;
  int axis = -1;
  i64 zero_point = 0;
};
std::optional<Weights> weights_of(const Value *v);

/// The grid that a quantize operator rounds to.
struct Grid {
  double scale = 1;
  i64 zero_point = 0;
  i64 min = 0, max = 0; ///< of stored values
  ElementType element = ElementType::None;
};
std::optional<Grid> grid_of(const ir::Op &quantize);

/// An operator's operands and attributes, to make it again over others. `accumulator` takes the
/// place of acc_type where there is one.
std::vector<Value *> operands_of(const ir::Op &op);
std::vector<NamedAttr> attrs_of(const ir::Op &op, ElementType accumulator = ElementType::None);

/// The dequantize operator `like` over another stored tensor.
Value *dequantized(Emit &e, const ir::Op &like, Value *stored);

/// RESCALE: out = round((x - in_zero) * scale) + out_zero, saturated. One scale, or one per index
/// of the last dimension. Null (after a note) when a scale is out of reach of multiplier and shift.
Value *rescale(Emit &e, Value *x, ElementType to, std::span<const double> scales, i64 in_zero,
               i64 out_zero);
inline Value *rescale(Emit &e, Value *x, ElementType to, double scale, i64 in_zero, i64 out_zero) {
  return rescale(e, x, to, std::span<const double>(&scale, 1), in_zero, out_zero);
}
/// A stored tensor as i32 without its zero point: integers in steps of its scale.
Value *centred(Emit &e, const Stored &s);
/// The stored value of a real on a grid, clamped.
i64 on_grid(const Grid &g, double real);
/// Limits a tensor on the grid to what the grid may hold, when the element type holds more.
Value *limited(Emit &e, Value *x, const Grid &g);

/// Bits by which sums of two 8- or 16-bit tensors are refined before they are rounded.
inline int refinement(ElementType e) { return e == ElementType::I16 ? 14 : 20; }

/// A quantize or dequantize operator of that grid, made by `b`.
Value *quantize_by(ir::Builder &b, Value *real, const Grid &g);
Value *dequantize_by(ir::Builder &b, Value *stored, const Grid &g);

void add_quantized_movement_rules(pass::PatternSet &set);
void add_quantized_table_rules(pass::PatternSet &set);
void add_quantized_sum_rules(pass::PatternSet &set);
void add_quantized_product_rules(pass::PatternSet &set);
void add_quantized_control_rules(pass::PatternSet &set);
void add_quantized_softmax_rules(pass::PatternSet &set);
void add_quantized_norm_rules(pass::PatternSet &set);

/// Whether any operator quantizes or dequantizes.
bool is_quantized(const ir::Graph &graph);

/// Every operator that rounds real numbers to a grid.
std::vector<ir::OpCode> quantize_opcodes();
std::vector<ir::OpCode> dequantize_opcodes();

} // namespace chute::tosa

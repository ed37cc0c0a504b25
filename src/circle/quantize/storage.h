#pragma once

#include "circle/quantize/roles.h"
#include "ir/builder.h"

/// QUANTIZE and DEQUANTIZE as the quantization passes see them. Internal to circle/quantize.
namespace chute::circle {

/// The stored integers (or MX blocks) that a value is the reals of; null when it is no DEQUANTIZE.
ir::Value *stored(const ir::Value *v);
/// Whether an operator is a QUANTIZE of reals or of integers, to affine integers or MX blocks.
bool is_quantize(const ir::Op &op);
inline bool is_real(const ir::Value *v) {
  return v && v->type().is_tensor() && v->type().element() == ir::ElementType::F32;
}
/// True when the value has uses and each is an operand of QUANTIZE.
bool only_quantized(const ir::Value *v);
/// The type that all uses quantize to; an invalid type when they differ or are others.
ir::Type common_quantization(const ir::Value *v);

/// Inserted before `position`, with its provenance.
ir::Value *make_quantize(ir::Graph &graph, ir::Op &position, ir::Value *v, ir::Type type);
/// All uses of `v` (integers with parameters) read a DEQUANTIZE of it instead, which comes right
/// after the operator that gives `v`.
ir::Value *dequantize_uses(ir::Graph &graph, ir::Value *v);

} // namespace chute::circle

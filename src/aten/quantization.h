#pragma once

#include "ir/graph.h"

#include <boost/container/small_vector.hpp>

/// What the operators that quantize say, read into one form for every target.
namespace chute::aten {

/// stored = clamp(round(real * (1 / scale)) + zero_point, min, max); real = (stored - zero_point) *
/// scale.
struct AffineForm {
  enum class Step : u8 {
    Quantize,   ///< the result is `stored`
    Dequantize, ///< the operand is `stored`
    Both,       ///< fake-quantize: real numbers in and out
    None,       ///< switched off (fake_quant_enabled = 0): the operand as it is
  };
  Step step = Step::Both;
  int axis = -1; ///< one scale per index of this dimension; -1: one scale
  boost::container::small_vector<float, 1> scales;
  boost::container::small_vector<i64, 1> zero_points; ///< as many as scales
  i64 min = 0;
  i64 max = 0;
  /// The program's own type of stored values; None for fake-quantize.
  ir::ElementType storage = ir::ElementType::None;
};

/// Whether an operator is one of those that this form describes: fake_quantize_* per tensor and per
/// channel, quantized_decomposed.{quantize,dequantize}_per_{tensor,channel}.* and fake_quant.
bool has_affine_form(ir::OpCode code);

/// Reads one of them. The error says what is missing: parameters computed at run time
/// (`aten.quant.run_time`), or parameters without meaning (`aten.quant.parameters`).
Result<AffineForm> affine_form(const ir::Op &op);

/// The operator's scale, zero point and bounds as values where the form has them as operands; null
/// where it has not.
struct RunTimeParameters {
  ir::Value *scale = nullptr;
  ir::Value *zero_point = nullptr;
};
RunTimeParameters run_time_parameters(const ir::Op &op);

} // namespace chute::aten

#pragma once

#include "ir/context.h"
#include "ir/type.h"

#include <optional>
#include <span>
#include <string_view>

/// Post-training quantization: from a float Circle graph and example inputs to a quantized one.
namespace chute::ptq {

/// Which numbers stand for which tensors. Weights have a scale per output channel.
struct Scheme {
  std::string_view name;
  ir::ElementType activation = ir::ElementType::I8;
  bool activation_symmetric = false; ///< zero point 0
  ir::ElementType weight = ir::ElementType::I8;
  bool weight_symmetric = true; ///< zero point 0, and the range is as wide on both sides
  ir::ElementType table = ir::ElementType::I8; ///< tables that rows are gathered from, per tensor
  ir::ElementType bias = ir::ElementType::I32;
  bool linear_per_layer = false; ///< FULLY_CONNECTED takes one scale for its weights (onert)
};

/// int8     i8 activations with a zero point, i8 weights without one, i32 bias (TFLite)
/// uint8    u8 activations and weights with zero points, i32 bias (ONE, onert)
/// int16x8  i16 activations without zero point, i8 weights without one, i64 bias (TFLite)
/// w8a16    i16 activations without zero point, u8 weights with one, i64 bias (ONE, TICO)
/// w4a16    the same with u4 weights
const Scheme *find_scheme(std::string_view name);
std::span<const Scheme> all_schemes();

/// The real numbers that a tensor takes; `lo` > `hi` when none was seen.
struct Range {
  float lo = 1;
  float hi = 0;
  bool empty() const { return !(lo <= hi); }
  void include(Range r);
};

/// Parameters that map `r` onto the stored range; zero is always exact. A range of one point gets
/// scale 1 (zero) or that point's magnitude over the stored maximum.
const ir::Quantization *parameters(ir::Context &ctx, Range r, ir::ElementType element,
                                   bool symmetric);

/// Parameters that an operator's definition fixes for its result: those of LOGISTIC, SOFTMAX, TANH,
/// L2_NORMALIZATION and, in 8 bits, LOG_SOFTMAX. Null for every other operator.
const ir::Quantization *fixed_parameters(ir::Context &ctx, std::string_view op,
                                         const Scheme &scheme);

} // namespace chute::ptq

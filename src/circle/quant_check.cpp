#include "circle/quant_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace chute::circle {

namespace {

namespace cs = ::circle;

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

const cs::Tensor *operand(const cs::SubGraph &sub, const cs::Operator &op, u32 i) {
  if (i >= size_of(op.inputs()) || op.inputs()->Get(i) < 0)
    return nullptr;
  return sub.tensors()->Get(static_cast<u32>(op.inputs()->Get(i)));
}

u32 num_scales(const cs::Tensor *t) {
  const auto *q = t ? t->quantization() : nullptr;
  return q && q->details_type() == cs::QuantizationDetails_NONE ? size_of(q->scale()) : 0;
}

i64 zero_point(const cs::Tensor &t, u32 i) {
  const auto *v = t.quantization()->zero_point();
  i64 out = 0;
  if (i < size_of(v))
    std::memcpy(&out, v->Data() + i * sizeof(i64), sizeof(i64));
  return out;
}

/// The operand whose elements an operator moves; -1 when it computes.
int moved_operand(ir::OpCode code) {
  static const std::vector<i8> table = [] {
    std::vector<i8> out(kNumOps, -1);
    const auto set = [&](ir::OpCode c, i8 operand) {
      out[ir::index(c) - ir::kCircleBase] = operand;
    };
    for (ir::OpCode c : {op::RESHAPE,
                         op::TRANSPOSE,
                         op::SQUEEZE,
                         op::EXPAND_DIMS,
                         op::SLICE,
                         op::STRIDED_SLICE,
                         op::GATHER,
                         op::GATHER_ND,
                         op::SPLIT_V,
                         op::UNPACK,
                         op::REVERSE_V2,
                         op::TILE,
                         op::BROADCAST_TO,
                         op::SPACE_TO_DEPTH,
                         op::DEPTH_TO_SPACE,
                         op::SPACE_TO_BATCH_ND,
                         op::BATCH_TO_SPACE_ND,
                         op::PAD,
                         op::MIRROR_PAD,
                         op::MAX_POOL_2D,
                         op::RESIZE_NEAREST_NEIGHBOR})
      set(c, 0);
    set(op::SPLIT, 1);
    return out;
  }();
  return table[ir::index(code) - ir::kCircleBase];
}

struct Layer {
  u32 input, weights, bias;
  i32 axis; ///< of the output channels among the weights' dimensions
};

const Layer *layer_of(ir::OpCode code) {
  static constexpr Layer kPlain{0, 1, 2, 0}, kDepthwise{0, 1, 2, 3}, kTransposed{2, 1, 3, 0};
  if (code == op::FULLY_CONNECTED || code == op::CONV_2D)
    return &kPlain;
  if (code == op::DEPTHWISE_CONV_2D)
    return &kDepthwise;
  return code == op::TRANSPOSE_CONV ? &kTransposed : nullptr;
}

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", v);
  return text;
}

QuantFinding check_moved(const cs::Tensor &in, const cs::SubGraph &sub, const cs::Operator &op) {
  const u32 scales = num_scales(&in);
  for (u32 i = 0; i < size_of(op.outputs()); ++i) {
    const cs::Tensor &out = *sub.tensors()->Get(static_cast<u32>(op.outputs()->Get(i)));
    if (out.type() != in.type() || scales > 1 || num_scales(&out) > 1)
      continue;
    const std::string part = ".outputs[" + std::to_string(i) + "]";
    if (scales != num_scales(&out))
      return {Severity::Warning,
              std::string("moves elements, but only its ") + (scales ? "operand" : "result") +
                  " has a scale",
              part};
    if (scales == 0)
      continue;
    const float a = in.quantization()->scale()->Get(0), b = out.quantization()->scale()->Get(0);
    if (std::fabs(a - b) > 1e-6f * std::fabs(a) || zero_point(in, 0) != zero_point(out, 0))
      return {Severity::Warning,
              "moves elements with scale " + number(a) + " and zero point " +
                  std::to_string(zero_point(in, 0)) + " and declares " + number(b) + " and " +
                  std::to_string(zero_point(out, 0)),
              part};
  }
  return {};
}

QuantFinding check_layer(const Layer &layer, const cs::SubGraph &sub, const cs::Operator &op) {
  const cs::Tensor *input = operand(sub, op, layer.input);
  const cs::Tensor *weights = operand(sub, op, layer.weights);
  const u32 channels = num_scales(weights);
  if (channels > 1 && weights->quantization()->quantized_dimension() != layer.axis)
    return {Severity::Error,
            "the weights have a scale per index of dimension " +
                std::to_string(weights->quantization()->quantized_dimension()) +
                ", not of the output channels' dimension " + std::to_string(layer.axis),
            ".inputs[" + std::to_string(layer.weights) + "]"};
  const cs::Tensor *bias = operand(sub, op, layer.bias);
  if (num_scales(input) != 1 || channels == 0 || num_scales(bias) == 0)
    return {};
  const std::string part = ".inputs[" + std::to_string(layer.bias) + "]";
  const u32 steps = num_scales(bias);
  if (steps != channels && steps != 1 && channels != 1)
    return {Severity::Warning,
            std::to_string(steps) + " bias scales for " + std::to_string(channels) +
                " weight scales",
            part};
  const double in = static_cast<double>(input->quantization()->scale()->Get(0));
  for (u32 i = 0; i < std::max(steps, channels); ++i) {
    const double w =
        static_cast<double>(weights->quantization()->scale()->Get(std::min(i, channels - 1)));
    const double b =
        static_cast<double>(bias->quantization()->scale()->Get(std::min(i, steps - 1)));
    if (std::fabs(b - in * w) > 0.01 * in * w)
      return {Severity::Warning,
              "the bias has scale " + number(b) + " where input and weights give " +
                  number(in * w) + " (channel " + std::to_string(i) + ")",
              part};
    if (zero_point(*bias, std::min(i, steps - 1)) != 0)
      return {Severity::Warning, "the bias has a zero point", part};
  }
  return {};
}

} // namespace

QuantFinding check_operator_quantization(const cs::SubGraph &sub, const cs::Operator &op,
                                         ir::OpCode code) {
  if (const int moved = moved_operand(code); moved >= 0) {
    const cs::Tensor *in = operand(sub, op, static_cast<u32>(moved));
    return in ? check_moved(*in, sub, op) : QuantFinding();
  }
  if (const Layer *layer = layer_of(code))
    return check_layer(*layer, sub, op);
  return {};
}

} // namespace chute::circle

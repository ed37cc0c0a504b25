#pragma once

#include "circle/file_view.h"

#include <string>

/// Whether operators and the quantization of their tensors fit each other. Internal to the
/// verifier.
namespace chute::circle {

struct QuantFinding {
  Severity severity = Severity::Warning;
  std::string message; ///< empty: nothing to report
  std::string part;    ///< ".inputs[2]"
};

/// Operators that move elements, and max pooling, hand on the scale and zero point of what they
/// move: runtimes copy the stored numbers. A bias counts in units of input scale times weight scale
/// (TensorFlow Lite's quantization specification), from zero. Weights have their channels along the
/// axis of the output channels. Only per-tensor and per-channel parameters are looked at; indices
/// and arity were checked.
QuantFinding check_operator_quantization(const ::circle::SubGraph &sub,
                                         const ::circle::Operator &op, ir::OpCode code);

} // namespace chute::circle

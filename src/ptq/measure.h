#pragma once

#include "ptq/calibrate.h"

#include <vector>

namespace chute::ptq {

/// Power of a signal and of its error, summed over what was compared.
struct Comparison {
  double signal = 0;
  double noise = 0;
  u64 count = 0;
  /// Signal-to-quantization-noise ratio in dB; +infinity for no error, NaN for nothing compared.
  double sqnr() const;
};

/// Compares a quantized graph with the float graph that it was made of, value by value, on the same
/// inputs. Of large tensors, evenly spaced elements are compared; masked ones are not (Masks).
/// Memory: what evaluation needs, and up to 256 MiB.
class Measurement {
public:
  explicit Measurement(const ir::Graph &reference)
      : reference_(reference), masks_(reference), values_(reference.num_value_ids()) {}

  /// Errors: those of eval::evaluate.
  Status add(const ir::Graph &quantized, const Sample &sample, int threads);

  const Comparison &of(const ir::Value &v) const { return values_[v.id()]; }
  /// By position of the program's outputs; outputs of integers are not compared.
  const std::vector<Comparison> &outputs() const { return outputs_; }

private:
  const ir::Graph &reference_;
  Masks masks_;
  std::vector<Comparison> values_; // by Value::id
  std::vector<Comparison> outputs_;
};

} // namespace chute::ptq

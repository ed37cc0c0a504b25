#pragma once

#include "ptq/apply.h"
#include "ptq/measure.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chute::ptq {

enum class WeightMode : u8 {
  Nearest,
  Auto, ///< Gptq for layers up to a depth of 1024, Nearest where the graph does not allow it
  Gptq, ///< by make_gptq(), on the first samples
};

struct Options {
  PlanOptions plan;
  ObserverOptions observer;
  IoType io = IoType::Float;
  WeightMode weights = WeightMode::Auto;
  size_t gptq_samples = 32;
  int threads = 0;            ///< for evaluation; 0: all cores
  size_t report_samples = 16; ///< the error is measured on so many of the first samples
};

/// One result of a quantized operator.
struct Layer {
  std::string name;
  std::string op;     ///< "circle.conv_2d"
  std::string module; ///< "layers.3.mlp.up_proj"; empty when unknown
  std::string type;   ///< "i8"
  float scale = 0;
  i64 zero_point = 0;
  Range seen; ///< what the float graph computed in the calibration
  double sqnr = 0;
};
/// One operator that computes in float.
struct Kept {
  std::string name;
  std::string op;
  std::string module;
  std::string reason;
};

struct Report {
  size_t samples = 0;
  std::vector<Layer> layers;                           ///< in the graph's order
  std::vector<Kept> kept;                              ///< in the graph's order
  std::vector<std::pair<std::string, double>> outputs; ///< SQNR by name; NaN for integers
  u64 quantize_ops = 0;
  u64 dequantize_ops = 0;
  u64 adjusted = 0;         ///< weights that GPTQ chose
  std::string without_gptq; ///< Auto: why it was not used; empty when it was
};

/// Makes the float graph anew, with the same ids every time.
using LoadGraph = std::function<Result<std::unique_ptr<ir::Graph>>()>;
/// Hands every sample to its argument, in order; the sample may go when that returns.
using ForEachSample =
    std::function<Status(const ir::Graph &, const std::function<Status(const Sample &)> &)>;

/// Quantizes a float Circle graph after training: observes it on the samples, plans, applies the
/// plan to a second copy, compares the two, and reports. The result is not optimized yet (`cse`,
/// `dce`). Errors: quantize.no_samples, quantize.already (the graph has quantized types),
/// quantize.nothing (every operator stays in float), quantize.not_finite, those of evaluation.
Result<std::unique_ptr<ir::Graph>> quantize(const LoadGraph &load, const ForEachSample &samples,
                                            const Options &options, Report &report);

} // namespace chute::ptq

#include "convert/pipelines.h"

namespace chute::convert {

const std::vector<std::string> &core_aten_pipeline() {
  static const std::vector<std::string> passes{
      "functionalize",  // no in-place writes, no aliasing views; mutation becomes outputs
      "normalize",      // one spelling per operator, promotion as casts, no assertions or no-ops
      "expand-loops",   // map and scan become while_loop
      "decompose",      // composites become core operators
      "check-core",     // whatever is left is reported, all of it at once
      "fold-constants", // shapes, masks, positions and folded weights become constants
      "expand-quantization", // run-time scales, tokens, groups, microscaling: arithmetic
      "cse",                 // attention heads and rotary embeddings repeat the same arithmetic
  };
  return passes;
}

const std::vector<std::string> &executable_pipeline() {
  static const std::vector<std::string> passes = [] {
    std::vector<std::string> p = core_aten_pipeline();
    std::erase(p, "check-core");
    std::erase(p, "cse");
    return p;
  }();
  return passes;
}

const std::vector<std::string> &circle_pipeline() {
  static const std::vector<std::string> passes{
      "drop-mutations",     // a Circle file has the user's outputs only
      "narrow-floats",      // what the format's runtimes compute in
      "lower-control-flow", // IF and WHILE, whose bodies are lowered with the rest
      "tico-switches",      // what TICO's configuration asks for beyond the default
      "expand-elementary",  // inverse trigonometry and its kin: no target has them
      "legalize-circle",    // core ATen to Circle operators, convolutions in channels-last order
      "cse",                // one transpose per value, whoever asked for it
      "sink-transposes",    // neighbours that agree on a layout need no transposes between them
      "optimize-circle",    // every local rewrite: views, slices, arithmetic, fusions
      "hoist-quantize",     // QUANTIZE goes to the arithmetic that makes its operand
      "fold-quantize",      // arithmetic between DEQUANTIZE and QUANTIZE works on integers
      "quantize-interface", // inputs and outputs are integers where the program quantizes them
      "fold-constants",     // what the passes above left over constants
      "cse",
      "optimize-circle", // what equal operators had hidden
      "cse",
      "separate-outputs", // onert overwrites an output that operators use as well
      "store-state",      // --state variable: buffers are written last
  };
  return passes;
}

bool is_optimization(std::string_view pass) {
  return pass == "sink-transposes" || pass == "optimize-circle";
}

void add_tosa_settings(const std::vector<std::pair<std::string, i64>> &size_hints,
                       pass::Settings &settings) {
  settings["target"] = "tosa";
  std::string &text = settings["size_hints"];
  for (const auto &[name, value] : size_hints)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
}

const std::vector<std::string> &tosa_pipeline() {
  static const std::vector<std::string> passes{
      "drop-mutations",     // a block returns the user's outputs only
      "narrow-types",       // TOSA 1.0 has no i64 and no f64
      "expand-elementary",  // inverse trigonometry and its kin: no target has them
      "legalize-tosa",      // core ATen to TOSA operators, convolutions in channels-last order
      "tosa-io-layout",     // --io-layout nhwc
      "tosa-fold-quantize", // integers between quantize and dequantize, tables, rescaling
      "cse",                // one transpose per value, whoever asked for it
      "tosa-sink-layouts",  // neighbours that agree on a layout need no transposes between them
      "tosa-fold-scale",    // per-channel scale and shift move into weights and bias
      "tosa-simplify",      // what is left over
      "tosa-fit-profile",   // --profile fp: integers move as floats
      "cse",
      "tosa-quantize-interface", // i8 in, i8 out
      "tosa-identities",         // an input that is an output, an output listed twice
      "tosa-check-profile",      // what the profile asked for does not have is an error
  };
  return passes;
}

} // namespace chute::convert

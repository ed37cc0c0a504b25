#pragma once

#include "eval/evaluator.h"
#include "ir/verifier.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

/// What tests of rewrites ask of random programs. Header-only: nothing of it is in the libraries.
namespace chute::eval {

inline std::vector<Tensor> random_inputs(const ir::Graph &graph, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> out;
  for (const ir::Value *arg : graph.body().args()) {
    Shape shape;
    for (const ir::SymInt d : arg->type().shape())
      shape.push_back(d.value());
    Tensor t = Tensor::allocate(arg->type().element(), shape);
    for (i64 i = 0; i < t.num_elements(); ++i) {
      const double v = static_cast<double>(random() % 4001) / 1000.0 - 2.0;
      switch (t.element()) {
      case ir::ElementType::F32: t.mutable_as<float>()[i] = static_cast<float>(v); break;
      case ir::ElementType::I32: t.mutable_as<i32>()[i] = static_cast<i32>(v * 8); break;
      case ir::ElementType::I8: t.mutable_as<i8>()[i] = static_cast<i8>(v * 20); break;
      default: t.mutable_as<u8>()[i] = v > 0;
      }
    }
    out.push_back(std::move(t));
  }
  return out;
}

/// What differs, empty when nothing does. Integers and bools are equal; floats as near as two
/// orders of the same few roundings come.
inline std::string difference(const Tensor &a, const Tensor &b) {
  if (a.element() != b.element() || a.shape() != b.shape())
    return "types differ";
  double largest = 1;
  for (i64 i = 0; i < a.num_elements(); ++i)
    if (std::isfinite(a.at(i)))
      largest = std::max(largest, std::abs(a.at(i)));
  const double allowed = a.element() == ir::ElementType::F32 ? 2e-4 * largest : 0;
  for (i64 i = 0; i < a.num_elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (!(x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= allowed))
      return "element " + std::to_string(i) + " was " + std::to_string(x) + ", is " +
             std::to_string(y);
  }
  return {};
}

/// The first fault of the graph, empty when it has none. QUANTIZE has no type of its own to infer.
inline std::string fault(const ir::Graph &graph) {
  Diagnostics diagnostics;
  ir::VerifyOptions check;
  check.check_inference = true;
  ir::verify(graph, diagnostics, check);
  for (const Diagnostic &d : diagnostics.all())
    if (d.message.find("no inference rule") == std::string::npos)
      return to_text(d);
  return {};
}

} // namespace chute::eval

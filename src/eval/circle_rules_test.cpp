// Random Circle programs compute the same before and after every rewrite of `optimize-circle`, and
// every rule of it is hit at least 20 times (the test prints how often).

#include "circle/ops.h"
#include "circle/passes.h"
#include "circle/testing/random_circle.h"
#include "eval/evaluator.h"
#include "eval/passes.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "pass/pass.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace chute::eval {
namespace {

constexpr u64 kPrograms = 2500;

std::vector<Tensor> random_inputs(const ir::Graph &graph, u64 seed) {
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
std::string difference(const Tensor &a, const Tensor &b) {
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
std::string fault(const ir::Graph &graph) {
  Diagnostics diagnostics;
  ir::VerifyOptions check;
  check.check_inference = true;
  ir::verify(graph, diagnostics, check);
  for (const Diagnostic &d : diagnostics.all())
    if (d.message.find("no inference rule") == std::string::npos)
      return to_text(d);
  return {};
}

TEST(CircleRules, RandomProgramsKeepTheirValues) {
  circle::register_dialect();
  circle::register_circle_passes();
  pass::register_core_passes();
  register_passes();
  std::map<std::string, u64> hits;
  for (u64 seed = 0; seed < kPrograms; ++seed) {
    ir::Context ctx;
    const std::unique_ptr<ir::Graph> graph =
        circle::testing::RandomCircle(ctx, seed).make(12 + seed % 20);
    ASSERT_EQ(fault(*graph), "") << seed << "\n" << ir::print(*graph);
    const std::string before_text = ir::print(*graph);
    const std::vector<Tensor> inputs = random_inputs(*graph, seed);
    const auto before = evaluate(*graph, inputs);
    ASSERT_TRUE(before) << seed << ": " << to_text(before.error());

    Diagnostics diagnostics;
    pass::PipelineOptions options;
    options.collect_stats = true;
    std::vector<pass::PassRecord> records;
    const bool ok = pass::run_pipeline(*graph, {"optimize-circle", "cse", "optimize-circle"},
                                       diagnostics, options, records);
    ASSERT_TRUE(ok) << seed << ": " << to_text(diagnostics.all().front());
    ASSERT_EQ(fault(*graph), "") << seed << "\n" << before_text << "\n" << ir::print(*graph);
    const auto after = evaluate(*graph, inputs);
    ASSERT_TRUE(after) << seed << ": " << to_text(after.error()) << ir::print(*graph);
    ASSERT_EQ(before->size(), after->size());
    for (size_t i = 0; i < before->size(); ++i) {
      const std::string wrong = difference((*before)[i], (*after)[i]);
      ASSERT_EQ(wrong, "") << "seed " << seed << ", output " << i << "\n"
                           << before_text << "\n"
                           << ir::print(*graph);
    }
    for (const pass::PassRecord &r : records)
      for (const pass::PatternStats &p : r.patterns)
        hits[std::string(p.name)] += p.rewrites;
  }
  for (const auto &[rule, count] : hits) {
    std::printf("%8llu %s\n", static_cast<unsigned long long>(count), rule.c_str());
    EXPECT_GE(count, 20u) << rule << " is hardly tested";
  }
}

} // namespace
} // namespace chute::eval

// Random Circle programs compute the same before and after every rewrite of `optimize-circle`, and
// every rule of it is hit at least 20 times (the test prints how often).

#include "circle/ops.h"
#include "circle/passes.h"
#include "circle/testing/random_circle.h"
#include "eval/passes.h"
#include "eval/testing/check_programs.h"
#include "ir/text.h"
#include "pass/pass.h"

#include <gtest/gtest.h>
#include <map>

namespace chute::eval {
namespace {

constexpr u64 kPrograms = 2500;

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

// What `order-for-memory` does to the plan: the peak is never raised, the pass counts as plan()
// does, values stay, and work grows as n log n.

#include "circle/activations.h"
#include "circle/ops.h"
#include "circle/passes.h"
#include "circle/passes/order_for_memory.h"
#include "circle/testing/random_circle.h"
#include "circle/testing/random_regions.h"
#include "eval/testing/check_programs.h"
#include "ir/text.h"
#include "pass/pass.h"
#include "toolkit/plan.h"

#include <gtest/gtest.h>

namespace chute::toolkit {
namespace {

WorkCounters reorder(ir::Graph &graph) {
  Diagnostics diagnostics;
  WorkCounters work;
  const pass::Settings settings;
  pass::PassContext ctx{graph, diagnostics, work, settings, {}, nullptr};
  circle::order_for_memory(ctx);
  return work;
}

TEST(PlanOrder, RandomProgramsNeedNoMoreAndComputeTheSame) {
  circle::register_dialect();
  u64 lower = 0;
  for (u64 seed = 0; seed < 600; ++seed) {
    ir::Context ctx;
    const auto graph = seed % 3 ? circle::testing::RandomRegions(ctx, seed).make(8 + seed % 40)
                                : circle::testing::RandomCircle(ctx, seed).make(8 + seed % 40);
    const std::string text = ir::print(*graph);
    const auto inputs = eval::random_inputs(*graph, seed);
    const auto want = eval::evaluate(*graph, inputs);
    ASSERT_TRUE(want);
    const u64 before = plan(*graph).lower_bound;
    WorkCounters work;
    circle::MemoryOrder memory(*graph, work);
    ASSERT_EQ(memory.peak(), before) << seed << "\n" << text;
    ASSERT_LE(memory.bound(), before);
    memory.improve();
    reorder(*graph);
    const u64 after = plan(*graph).lower_bound;
    ASSERT_EQ(memory.improved_peak(), after) << seed << "\n" << text << ir::print(*graph);
    ASSERT_LE(after, before);
    ASSERT_GE(after, memory.bound());
    lower += after < before;
    ASSERT_EQ(eval::fault(*graph), "") << seed << "\n" << ir::print(*graph);
    const auto got = eval::evaluate(*graph, inputs);
    ASSERT_TRUE(got);
    for (size_t i = 0; i < want->size(); ++i)
      for (i64 k = 0; k < (*want)[i].num_elements(); ++k)
        ASSERT_TRUE((*want)[i].at(k) == (*got)[i].at(k) || std::isnan((*want)[i].at(k)));
    // What is there is not reordered again.
    ASSERT_EQ(reorder(*graph).rewrites == 0 || plan(*graph).lower_bound < after, true) << seed;
  }
  std::printf("%llu of 600 programs have a lower peak\n", static_cast<unsigned long long>(lower));
  EXPECT_GE(lower, 20u);
}

/// Blocks whose branches are all started before the first is ended.
std::string blocks(int n) {
  std::string body, last = "x";
  for (int i = 0; i < n; ++i) {
    const std::string k = std::to_string(i);
    for (int w = 0; w < 4; ++w)
      body += "  %w" + k + "_" + std::to_string(w) + " = circle.concatenation(%" + last + ", %" +
              last + ") {axis = 0}\n";
    for (int w = 0; w < 4; ++w)
      body += "  %s" + k + "_" + std::to_string(w) + " = circle.sum(%w" + k + "_" +
              std::to_string(w) + ", %axis) {keep_dims = true}\n";
    body += "  %a" + k + " = circle.add(%s" + k + "_0, %s" + k + "_1)\n  %b" + k +
            " = circle.add(%s" + k + "_2, %s" + k + "_3)\n  %c" + k + " = circle.add(%a" + k +
            ", %b" + k + ")\n";
    last = "c" + k;
  }
  return "graph @main(%x: f32[1,64]) -> (\"o\": f32[1,64]) {\n"
         "  %axis = core.constant dense<0> : i32[]\n" +
         body + "  return %" + last + "\n}";
}

TEST(PlanOrder, BranchesAreEndedBeforeTheNextIsStarted) {
  circle::register_dialect();
  ir::Context ctx;
  auto g = ir::parse(ctx, blocks(3));
  ASSERT_TRUE(g) << g.error().message;
  const PlanReport before = plan(**g);
  const OrderReport other = plan_in_another_order(**g, before);
  EXPECT_EQ(before.lower_bound, 256u + 4 * 512 + 0);
  EXPECT_TRUE(other.better);
  EXPECT_LE(other.plan.lower_bound, 256u * 4 + 512);
  EXPECT_GE(other.plan.lower_bound, other.order_bound);
}

TEST(PlanOrder, WorkIsLinear) {
  circle::register_dialect();
  u64 last = 0;
  for (int n : {100, 200, 400, 800}) {
    ir::Context ctx;
    auto g = ir::parse(ctx, blocks(n));
    ASSERT_TRUE(g);
    const u64 work = reorder(**g).ops_visited;
    if (last) {
      EXPECT_LE(work, 2 * last + 64);
    }
    last = work;
  }
}

} // namespace
} // namespace chute::toolkit

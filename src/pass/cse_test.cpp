#include "aten/ops.h"
#include "ir/builder.h"
#include "pass/pass.h"

#include <gtest/gtest.h>

namespace chute::pass {
namespace {

// A text form leaves the bytes of large constants out. Each such constant equals itself alone, and
// must be told apart by its hash: compared with all earlier ones, a stack of layers took seconds.
TEST(Cse, ConstantsWithoutDataAreNotComparedWithEachOther) {
  aten::register_dialect();
  register_core_passes();
  ir::Context ctx;
  ir::Graph graph(ctx);
  const ir::Type type = ctx.tensor_type(ir::ElementType::F32, {64, 64});
  ir::Builder b(graph, graph.body());
  std::vector<ir::Value *> results;
  for (int i = 0; i < 2000; ++i) {
    const ir::Constant *c = graph.add_constant(type, nullptr, nullptr, {}, false);
    results.push_back(b.constant(c));
    results.push_back(b.constant(c)); // the same one: merged
  }
  b.ret(results);
  Diagnostics diagnostics;
  std::vector<PassRecord> records;
  ASSERT_TRUE(run_pipeline(graph, {"cse"}, diagnostics, {}, records));
  EXPECT_EQ(records[0].counters.rewrites, 2000u);
  EXPECT_EQ(records[0].counters.patterns_tried, 2000u);
  EXPECT_EQ(graph.num_ops(), 2001u);
}

} // namespace
} // namespace chute::pass

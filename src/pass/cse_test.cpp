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

class CseOfValues : public testing::Test {
protected:
  CseOfValues() : graph(ctx), b(graph, graph.body()) {
    aten::register_dialect();
    register_core_passes();
    type = ctx.tensor_type(ir::ElementType::F32, {2, 3});
    x = graph.add_argument(graph.body(), type);
  }
  u64 merged() {
    Diagnostics diagnostics;
    std::vector<PassRecord> records;
    PipelineOptions options;
    options.verify_each = true;
    EXPECT_TRUE(run_pipeline(graph, {"cse"}, diagnostics, options, records));
    return records[0].counters.rewrites;
  }
  ir::Value *exp(ir::Value *v) { return b.create(aten::op::exp, {v}); }
  ir::Value *neg(ir::Value *v) { return b.create(aten::op::neg, {v}); }

  ir::Context ctx;
  ir::Graph graph;
  ir::Builder b;
  ir::Type type;
  ir::Value *x = nullptr;
};

// Seen alone, an operator is remembered only once what it uses has been merged with something.
TEST_F(CseOfValues, FindsEqualsOfOperatorsThatHadTheirOperandAlone) {
  ir::Value *first = neg(neg(exp(x)));
  ir::Value *second = neg(neg(exp(x)));
  ir::Value *third = neg(neg(exp(x)));
  b.ret(std::vector<ir::Value *>{first, second, third});
  EXPECT_EQ(merged(), 6u);
  EXPECT_EQ(graph.num_ops(), 4u);
  EXPECT_EQ(graph.return_op()->operand(0), graph.return_op()->operand(2));
}

TEST_F(CseOfValues, ErasesWhatNothingUses) {
  ir::Value *kept = exp(x);
  neg(exp(neg(x)));               // an unused chain, the first of which was remembered
  ir::Value *other = neg(neg(x)); // equal to it
  b.ret(std::vector<ir::Value *>{kept, other});
  EXPECT_EQ(merged(), 0u);
  EXPECT_EQ(graph.num_ops(), 4u);
}

} // namespace
} // namespace chute::pass

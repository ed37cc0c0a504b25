#include "aten/ops.h"
#include "ir/walk.h"
#include "pass/pass.h"

#include <gtest/gtest.h>

namespace chute::pass {
namespace {

using ir::Op;
using ir::Value;

class RewriterTest : public ::testing::Test {
protected:
  void SetUp() override {
    aten::register_dialect();
    type = ctx.tensor_type(ir::ElementType::F32, {2, 3});
  }
  Value *op(ir::OpCode code, std::vector<Value *> operands) {
    ir::Builder b(graph, graph.body());
    return b.create_typed(code, operands, {}, std::span<const ir::Type>(&type, 1))->result();
  }
  bool run(const PatternSet &set, RewriteOptions options = {}) {
    return run_patterns(graph, set, diagnostics, counters, options, &stats);
  }
  std::vector<std::string> ops() {
    std::vector<std::string> out;
    ir::walk(graph, [&](Op &o) { out.emplace_back(o.name()); });
    return out;
  }

  ir::Context ctx;
  ir::Graph graph{ctx};
  ir::Type type;
  Diagnostics diagnostics;
  WorkCounters counters;
  std::vector<PatternStats> stats;
};

bool neg_of_neg(Op &op, Rewriter &rw) {
  Op *inner = op.operand(0)->producer();
  if (!inner || inner->opcode() != aten::op::neg) {
    rw.reject("operand is not a negation");
    return false;
  }
  rw.replace(op, inner->operand(0));
  return true;
}

TEST_F(RewriterTest, RewritesToAFixedPointAndErasesWhatDied) {
  Value *x = graph.add_argument(graph.body(), type);
  Value *v = x;
  for (int i = 0; i < 6; ++i)
    v = op(aten::op::neg, {v});
  v = op(aten::op::relu, {v});
  ir::Builder(graph, graph.body()).ret(std::array{v});
  PatternSet set;
  set.add("neg-of-neg", {aten::op::neg}, neg_of_neg);
  EXPECT_TRUE(run(set));
  EXPECT_EQ(ops(), (std::vector<std::string>{"aten.relu.default", "core.return"}));
  EXPECT_EQ(graph.body().front()->operand(0), x);
  EXPECT_EQ(stats[0].rewrites, counters.rewrites);
  EXPECT_EQ(counters.rewrites, 3u);
  EXPECT_FALSE(run(set)) << "a second run has nothing to do";
}

TEST_F(RewriterTest, AnOperatorThatUsesAValueTwiceIsNotLookedAtAfterItDied) {
  Value *x = graph.add_argument(graph.body(), type);
  Value *r = op(aten::op::relu, {x});
  op(aten::op::mul_Tensor, {r, r}); // unused: erased while one of its uses of r is still linked
  ir::Builder(graph, graph.body()).ret(std::array{op(aten::op::neg, {op(aten::op::neg, {r})})});
  PatternSet set;
  set.add("neg-of-neg", {aten::op::neg}, neg_of_neg);
  EXPECT_TRUE(run(set));
  EXPECT_EQ(ops(), (std::vector<std::string>{"aten.relu.default", "core.return"}));
}

TEST_F(RewriterTest, CountsRejectionsByReason) {
  Value *x = graph.add_argument(graph.body(), type);
  ir::Builder(graph, graph.body()).ret(std::array{op(aten::op::neg, {x})});
  PatternSet set;
  set.add("neg-of-neg", {aten::op::neg}, neg_of_neg);
  EXPECT_FALSE(run(set));
  ASSERT_EQ(stats[0].rejections.size(), 1u);
  EXPECT_EQ(stats[0].rejections[0].first, "operand is not a negation");
  EXPECT_EQ(stats[0].rejections[0].second, 1u);
}

bool relu_to_sigmoid(Op &op, Rewriter &rw) {
  rw.replace(op, rw.before(op)
                     .create_typed(aten::op::sigmoid, std::array{op.operand(0)}, {},
                                   std::array{op.result()->type()})
                     ->result());
  return true;
}
bool sigmoid_to_relu(Op &op, Rewriter &rw) {
  rw.replace(op, rw.before(op)
                     .create_typed(aten::op::relu, std::array{op.operand(0)}, {},
                                   std::array{op.result()->type()})
                     ->result());
  return true;
}

TEST_F(RewriterTest, ALoopOfRewritesIsAnErrorThatNamesBothPatterns) {
  Value *x = graph.add_argument(graph.body(), type);
  ir::Builder(graph, graph.body()).ret(std::array{op(aten::op::relu, {x})});
  PatternSet set;
  set.add("relu-to-sigmoid", {aten::op::relu}, relu_to_sigmoid);
  set.add("sigmoid-to-relu", {aten::op::sigmoid}, sigmoid_to_relu);
  run(set);
  ASSERT_TRUE(diagnostics.has_errors());
  const Diagnostic &d = diagnostics.all()[0];
  EXPECT_EQ(d.code, "rewrite.loop");
  EXPECT_NE(d.message.find("relu-to-sigmoid"), std::string::npos);
  EXPECT_NE(d.message.find("sigmoid-to-relu"), std::string::npos);
}

/// Builds on the operator's operand, finds that it does not fit, and takes some of it away again.
bool gives_up(Op &op, Rewriter &rw) {
  const ir::Type type = op.result()->type();
  const auto build = [&](Value *x) {
    return rw.before(op).create_typed(aten::op::neg, std::array{x}, {},
                                      std::span<const ir::Type>(&type, 1));
  };
  build(build(op.operand(0))->result()); // left for the driver
  rw.erase(*build(op.operand(0)));
  return false;
}

TEST_F(RewriterTest, ARuleThatGivesUpIsNotAskedAgain) {
  Value *v = graph.add_argument(graph.body(), type);
  for (int i = 0; i < 5; ++i)
    v = op(aten::op::relu, {v});
  ir::Builder(graph, graph.body()).ret(std::array{v});
  PatternSet set;
  set.add("gives-up", {aten::op::relu}, gives_up);
  EXPECT_FALSE(run(set));
  EXPECT_EQ(stats[0].tried, 5u);
  EXPECT_EQ(graph.body().num_ops(), 6u);
}

TEST_F(RewriterTest, StopsAtTheRewriteLimit) {
  Value *v = graph.add_argument(graph.body(), type);
  for (int i = 0; i < 8; ++i)
    v = op(aten::op::neg, {v});
  ir::Builder(graph, graph.body()).ret(std::array{v});
  PatternSet set;
  set.add("neg-of-neg", {aten::op::neg}, neg_of_neg);
  u64 used = 0;
  RewriteOptions options;
  options.rewrite_limit = 2;
  options.used = &used;
  run(set, options);
  EXPECT_EQ(used, 2u);
  EXPECT_EQ(graph.body().num_ops(), 8u - 4u + 1u);
}

TEST_F(RewriterTest, NamesOfReplacedResultsMoveToTheirReplacement) {
  Value *x = graph.add_argument(graph.body(), type);
  Value *r = op(aten::op::relu, {x});
  graph.set_name(r, ctx.intern("activation"));
  ir::Builder(graph, graph.body()).ret(std::array{r});
  PatternSet set;
  set.add("relu-to-sigmoid", {aten::op::relu}, relu_to_sigmoid);
  run(set);
  EXPECT_EQ(ctx.string(graph.body().front()->result()->name()), "activation");
}

TEST_F(RewriterTest, WorkGrowsWithTheGraphAndItsChangesOnly) {
  const auto work = [&](int n) {
    ir::Graph g(ctx);
    Value *v = g.add_argument(g.body(), type);
    ir::Builder b(g, g.body());
    for (int i = 0; i < n; ++i)
      v = b.create_typed(i % 5 < 3 ? aten::op::neg : aten::op::relu, std::array{v}, {},
                         std::array{type})
              ->result();
    b.ret(std::array{v});
    PatternSet set;
    set.add("neg-of-neg", {aten::op::neg}, neg_of_neg);
    WorkCounters c;
    run_patterns(g, set, diagnostics, c);
    return c;
  };
  const WorkCounters one = work(5000), two = work(10000), four = work(20000);
  for (const auto field : {&WorkCounters::ops_visited, &WorkCounters::patterns_tried,
                           &WorkCounters::rewrites, &WorkCounters::enqueues}) {
    EXPECT_LE(static_cast<double>(two.*field), 2.05 * static_cast<double>(one.*field));
    EXPECT_LE(static_cast<double>(four.*field), 2.05 * static_cast<double>(two.*field));
  }
  EXPECT_GT(one.rewrites, 0u);
}

TEST_F(RewriterTest, CseMergesEqualComputationsAndKeepsOthers) {
  register_core_passes();
  Value *x = graph.add_argument(graph.body(), type);
  Value *y = graph.add_argument(graph.body(), type);
  ir::Builder b(graph, graph.body());
  Value *a = b.scalar(ir::ElementType::F32, 2.0);
  Value *c = b.scalar(ir::ElementType::F32, 2.0);
  Value *d = b.scalar(ir::ElementType::F32, 3.0);
  Value *e1 = op(aten::op::exp, {x}), *e2 = op(aten::op::exp, {x}), *e3 = op(aten::op::exp, {y});
  Value *m1 = op(aten::op::mul_Tensor, {e1, a}), *m2 = op(aten::op::mul_Tensor, {c, e2});
  Value *m3 = op(aten::op::mul_Tensor, {e3, d});
  Value *s1 = op(aten::op::sub_Tensor, {m1, m3}), *s2 = op(aten::op::sub_Tensor, {m3, m2});
  b.set_insertion(graph.body(), nullptr);
  b.ret(std::array{s1, s2});
  std::vector<PassRecord> records;
  ASSERT_TRUE(run_pipeline(graph, {"cse", "dce"}, diagnostics, {}, records));
  // constants 2 and 3, two exp, two mul, two sub (not commutative), return
  EXPECT_EQ(graph.body().num_ops(), 9u);
}

TEST_F(RewriterTest, AnUnknownPassIsAUsageError) {
  std::vector<PassRecord> records;
  EXPECT_FALSE(run_pipeline(graph, {"no-such-pass"}, diagnostics, {}, records));
  EXPECT_EQ(diagnostics.first_error_kind(), ErrorKind::Usage);
}

} // namespace
} // namespace chute::pass

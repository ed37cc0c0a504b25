#include "toolkit/compare.h"

#include "circle/ops.h"
#include "circle/passes.h"
#include "eval/evaluator.h"
#include "ir/text.h"
#include "toolkit/bisect.h"
#include "toolkit/inputs.h"

#include <cmath>
#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

using eval::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Measure, SaysHowFarApart) {
  const Tensor a = Tensor::f32({4}, {1, 2, 0, -4}), b = Tensor::f32({4}, {1, 2.5, 0.25, -4});
  const Difference d = measure(a, {}, b, {}, {0.3, 0});
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_EQ(d.max_rel, 0.25);
  EXPECT_EQ(d.beyond, 1);
  EXPECT_NEAR(d.sqnr_db, 10 * std::log10(21 / 0.3125), 1e-9);
  EXPECT_TRUE(measure(a, {}, b, {}, {0.5, 0}).within());
  EXPECT_TRUE(measure(a, {}, a, {}, {0, 0}).within());
  EXPECT_EQ(measure(a, {}, a, {}, {0, 0}).sqnr_db, kInfinity);
}

TEST(Measure, NotNumbersAndOtherShapes) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor a = Tensor::f32({3}, {nan, infinity, 1});
  EXPECT_TRUE(measure(a, {}, a, {}, {0, 0}).within());
  const Difference d = measure(a, {}, Tensor::f32({3}, {0, infinity, nan}), {}, {1, 1});
  EXPECT_EQ(d.beyond, 2);
  EXPECT_EQ(d.max_abs, kInfinity);
  EXPECT_FALSE(measure(a, {}, Tensor::f32({1, 3}, {0, 0, 0}), {}, {1, 1}).within());
}

class CompareTest : public ::testing::Test {
protected:
  void SetUp() override {
    circle::register_dialect();
    circle::register_circle_passes();
    pass::register_core_passes();
  }
  std::unique_ptr<ir::Graph> load(const std::string &text) {
    auto g = ir::parse(ctx, text);
    EXPECT_TRUE(g) << (g ? "" : g.error().message) << "\n" << text;
    return g ? std::move(*g) : nullptr;
  }
  std::vector<Tensor> made_up(const ir::Graph &g) {
    auto inputs = gather_inputs(g, {}, 3, diagnostics);
    EXPECT_TRUE(inputs);
    return *inputs;
  }
  ir::Context ctx;
  Diagnostics diagnostics;
};

constexpr const char *kReference = R"(graph @main(%x: f32[4]) -> ("o": f32[4]) {
  %k = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : f32[4]
  %a = circle.mul(%x, %k)
  %b = circle.tanh(%a)
  %c = circle.add(%b, %k)
  %d = circle.logistic(%c)
  return %d
})";

TEST_F(CompareTest, LayersNameTheFirstThatParts) {
  const auto a = load(kReference);
  std::string changed = kReference;
  changed.replace(changed.find("circle.add(%b, %k)"), 18, "circle.sub(%b, %k)");
  const auto b = load(changed);
  CompareOptions options;
  options.layers = true;
  const auto r = compare(*a, *b, made_up(*a), options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_FALSE(r->within());
  ASSERT_GE(r->first_parting, 0);
  // `c` is another operator under its name; `a` and `b` agree before it.
  EXPECT_EQ(r->layers[static_cast<size_t>(r->first_parting)].name_a, "c");
  EXPECT_EQ(r->first_parting, 2);
  EXPECT_TRUE(compare(*a, *a, made_up(*a), options)->within());
}

TEST_F(CompareTest, QuantizedAgainstFloatAsRealNumbers) {
  const auto a = load("graph @main(%x: f32[4]) -> (\"o\": f32[4]) {\n  %a = circle.relu(%x)\n"
                      "  return %a\n}");
  const auto b =
      load("graph @main(%x: i8[4] quant(0.0078125)) -> (\"o\": i8[4] quant(0.0078125)) {\n"
           "  %a = circle.relu(%x) : i8[4] quant(0.0078125)\n  return %a\n}");
  CompareOptions options;
  options.tolerance = {0.004, 0};
  const auto r = compare(*a, *b, made_up(*a), options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_TRUE(r->within());
  EXPECT_GT(r->outputs[0].difference.max_abs, 0);
}

TEST_F(CompareTest, OtherInterfacesAreAnError) {
  const auto a = load(kReference);
  const auto b = load("graph @main(%p: f32[4], %q: f32[4]) -> (\"o\": f32[4]) {\n"
                      "  %a = circle.add(%p, %q)\n  return %a\n}");
  const auto r = compare(*a, *b, made_up(*a), {});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "toolkit.compare.inputs");
}

// --- bisect
// ---------------------------------------------------------------------------------------

u64 wrong_after = 0, rewritten = 0;

/// Replaces RELU by RELU6, which is right for small numbers; one of them becomes TANH instead.
bool nearly_right(ir::Op &op, pass::Rewriter &rw) {
  ir::Builder b = rw.before(op);
  rw.replace(op, b.create(++rewritten == wrong_after ? circle::op::TANH : circle::op::RELU6,
                          {op.operand(0)}));
  return true;
}
void nearly_right_pass(pass::PassContext &ctx) {
  rewritten = 0;
  pass::PatternSet patterns;
  patterns.add("harmless-rule", {circle::op::LOGISTIC},
               [](ir::Op &, pass::Rewriter &) { return false; });
  patterns.add("nearly-right-rule", {circle::op::RELU}, nearly_right);
  ctx.run(patterns);
}
void wrong_pass(pass::PassContext &ctx) {
  for (ir::Op &op : ctx.graph.body())
    if (op.opcode() == ir::core_op::ret)
      ctx.graph.set_operand(&op, 0, ctx.graph.body().arg(0));
}

class BisectTest : public CompareTest {
protected:
  void SetUp() override {
    CompareTest::SetUp();
    if (!pass::PassRegistry::global().find("test-nearly-right")) {
      pass::PassRegistry::global().add({"test-nearly-right", nearly_right_pass, "", "circle"});
      pass::PassRegistry::global().add({"test-wrong", wrong_pass, "", "circle"});
    }
    text = "graph @main(%x: f32[4]) -> (\"o\": f32[4]) {\n  %v0 = circle.add(%x, %x)\n";
    for (int i = 0; i < 100; ++i)
      text += "  %r" + std::to_string(i) + " = circle.relu(%v" + std::to_string(i) + ")\n  %v" +
              std::to_string(i + 1) + " = circle.add(%r" + std::to_string(i) + ", %x)\n";
    // Keeps the numbers small.
    text += "  %o = circle.tanh(%v100)\n  return %o\n}";
  }
  Result<BisectReport> find(std::vector<std::string> passes) {
    BisectOptions options;
    options.load = [&] { return Result<std::unique_ptr<ir::Graph>>(load(text)); };
    options.passes = std::move(passes);
    options.tolerance = {0, 0};
    const std::vector<Tensor> inputs{Tensor::f32({4}, {-1e-3F, 0.02F, 0.01F, 0.015F})};
    return bisect(inputs, options);
  }
  std::string text;
};

TEST_F(BisectTest, NamesTheOneWrongRewrite) {
  for (u64 wrong : {1, 37, 100}) {
    wrong_after = wrong;
    const auto r = find({"dce", "test-nearly-right", "cse"});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_TRUE(r->found);
    EXPECT_EQ(r->pass, "test-nearly-right");
    EXPECT_EQ(r->rule, "nearly-right-rule");
    EXPECT_EQ(r->application, wrong);
    EXPECT_EQ(r->rewrites, 100u);
    EXPECT_LE(r->runs, 16u);
    ASSERT_FALSE(r->change.changes.empty());
    bool tanh = false;
    for (const Change &c : r->change.changes)
      tanh = tanh || (c.op == "circle.tanh" && c.kind == ChangeKind::Added);
    EXPECT_TRUE(tanh);
  }
}

TEST_F(BisectTest, PassesWithoutRulesAndPipelinesThatAreRight) {
  wrong_after = 0;
  auto r = find({"dce", "test-nearly-right", "cse"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_FALSE(r->found);
  r = find({"dce", "test-wrong", "cse"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->pass, "test-wrong");
  EXPECT_EQ(r->application, 0u);
  EXPECT_EQ(find({"no-such-pass"}).error().code, "pass.unknown");
}

} // namespace
} // namespace chute::toolkit

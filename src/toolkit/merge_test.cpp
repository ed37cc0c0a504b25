#include "toolkit/merge.h"

#include "circle/ops.h"
#include "circle/writer.h"
#include "eval/evaluator.h"
#include "ir/text.h"
#include "ir/verifier.h"

#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class MergeTest : public ::testing::Test {
protected:
  void SetUp() override { circle::register_dialect(); }
  void add(const std::string &text) {
    auto g = ir::parse(ctx, text);
    ASSERT_TRUE(g) << g.error().message << "\n" << text;
    models.emplace_back();
    models.back().graph = std::move(*g);
    models.back().signature_key = "serving_default";
  }
  /// One operator from `in` to `out`, with a constant.
  void step(const std::string &op, const std::string &in, const std::string &out, double k) {
    add("graph @main(%" + in + ": f32[2]) -> (\"" + out +
        "\": f32[2]) {\n  %k = core.constant dense<[" + std::to_string(k) +
        ", 1.0]> : f32[2]\n  %" + out + " = circle." + op + "(%" + in + ", %k)\n  return %" + out +
        "\n}");
  }
  MergeReport join(const MergeOptions &options = {}) {
    auto r = merge(models, options);
    EXPECT_TRUE(r) << (r ? "" : r.error().message);
    Diagnostics d;
    ir::verify(*models[0].graph, d);
    EXPECT_FALSE(d.has_errors()) << (d.all().empty() ? "" : d.all()[0].message);
    return r ? *r : MergeReport();
  }
  std::vector<float> run(std::vector<float> x) {
    std::vector<eval::Tensor> inputs;
    for (size_t i = 0; i < models[0].graph->inputs().size(); ++i)
      inputs.push_back(eval::Tensor::of<float>(ir::ElementType::F32, {2}, x));
    auto r = eval::evaluate(*models[0].graph, inputs);
    EXPECT_TRUE(r) << (r ? "" : r.error().message);
    std::vector<float> out;
    for (const eval::Tensor &t : *r)
      out.insert(out.end(), t.as<float>(), t.as<float>() + 2);
    return out;
  }
  ir::Context ctx;
  std::vector<circle::Model> models;
};

TEST_F(MergeTest, ChainByName) {
  step("add", "x", "h", 1);
  step("mul", "h", "y", 3);
  const auto r = join();
  EXPECT_THAT(r.inputs, ElementsAre("x"));
  EXPECT_THAT(r.outputs, ElementsAre("y"));
  EXPECT_THAT(run({1, 2}), ElementsAre(6, 3));
}

TEST_F(MergeTest, ChainByPositionAndKeptOutputs) {
  step("add", "x", "a", 1);
  step("mul", "z", "b", 3);
  step("sub", "q", "c", 2);
  MergeOptions options;
  options.keep_outputs = true;
  EXPECT_THAT(join(options).outputs, ElementsAre("a", "b", "c"));
  EXPECT_THAT(run({1, 2}), ElementsAre(2, 3, 6, 3, 4, 2));
}

TEST_F(MergeTest, ConnectSaysWhich) {
  step("add", "x", "a", 1);
  step("mul", "x", "b", 3);
  step("sub", "q", "c", 2);
  MergeOptions options;
  options.connect = {{"a", "q"}};
  const auto r = join(options);
  EXPECT_THAT(r.inputs, ElementsAre("x", "x_1"));
  EXPECT_THAT(r.outputs, ElementsAre("b", "c"));
  EXPECT_THAT(run({1, 2}), ElementsAre(3, 2, 0, 2));
}

TEST_F(MergeTest, SideBySideAndSharedInputs) {
  for (bool share : {false, true}) {
    models.clear();
    step("add", "x", "y", 1);
    step("mul", "x", "y", 3);
    MergeOptions options;
    options.mode = MergeMode::SideBySide;
    options.share_inputs = share;
    const auto r = join(options);
    EXPECT_THAT(r.inputs, SizeIs(share ? 1 : 2));
    EXPECT_THAT(r.outputs, ElementsAre("y", "y_1"));
    EXPECT_THAT(run({1, 2}), ElementsAre(2, 3, 3, 2));
  }
}

TEST_F(MergeTest, SignaturesStaySubgraphs) {
  step("add", "x", "y", 1);
  step("mul", "x", "y", 1);
  MergeOptions options;
  options.mode = MergeMode::Signatures;
  const auto r = join(options);
  EXPECT_THAT(r.inputs, ElementsAre("serving_default:x", "serving_default_1:x"));
  circle::ModelWriteOptions write;
  write.compact = true;
  auto bytes = circle::write_model_bytes(models[0], write);
  ASSERT_TRUE(bytes) << bytes.error().message;
  auto back = circle::read_model(ctx, *bytes, nullptr);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_THAT(back->more, SizeIs(1));
  ASSERT_THAT(back->signatures, SizeIs(2));
  EXPECT_EQ(back->signatures[1].key, "serving_default_1");
  EXPECT_EQ(back->signatures[1].graph, 1u);
}

TEST_F(MergeTest, A22_EqualConstantsAreStoredOnceAndBothUsed) {
  step("add", "x", "h", 7);
  step("mul", "h", "y", 7);
  join();
  circle::WriteStats stats;
  ASSERT_TRUE(circle::write_bytes(*models[0].graph, {}, &stats));
  EXPECT_EQ(stats.buffers, 2u); // with the empty one
  EXPECT_THAT(run({1, 1}), ElementsAre(56, 2));
}

TEST_F(MergeTest, A72_ConstantsOfOneNameAreNotTheSame) {
  step("add", "x", "h", 7);
  step("mul", "h", "y", 9);
  join();
  circle::WriteStats stats;
  ASSERT_TRUE(circle::write_bytes(*models[0].graph, {}, &stats));
  EXPECT_EQ(stats.buffers, 3u);
  EXPECT_THAT(run({1, 1}), ElementsAre(72, 2));
}

TEST_F(MergeTest, A20_VariablesOfOneNameStayApart) {
  for (int i = 0; i < 2; ++i)
    add("graph @main(%x: f32[2]) -> (\"y\": f32[2], buffer(\"count\"): f32[2]) {\n"
        "  %s = core.state() {name = \"count\", value = dense<[0.0, 0.0]> : f32[2]} : f32[2]\n"
        "  %a = circle.add(%x, %s) : f32[2]\n  return %a, %a\n}");
  if (HasFatalFailure())
    return;
  MergeOptions options;
  options.mode = MergeMode::SideBySide;
  const auto r = join(options);
  const std::string text = ir::print(*models[0].graph);
  EXPECT_THAT(text, ::testing::HasSubstr("\"count\""));
  EXPECT_THAT(text, ::testing::HasSubstr("\"count_1\""));
  // The second model's write goes to the name that its variable was given.
  EXPECT_EQ(models[0].graph->outputs()[1].target, "count");
  EXPECT_EQ(models[0].graph->outputs()[3].target, "count_1");
  EXPECT_FALSE(r.renamed.empty());
}

TEST_F(MergeTest, A43_CustomOperatorsKeepTheirIdentity) {
  for (const char *code : {"One", "Two"})
    add("graph @main(%x: f32[2]) -> (\"y\": f32[2]) {\n  %y = circle.custom(%x) {custom_code = \"" +
        std::string(code) + "\", custom_options = \"" + code + "!\"} : f32[2]\n  return %y\n}");
  join();
  const std::string text = ir::print(*models[0].graph);
  EXPECT_THAT(text, ::testing::HasSubstr("custom_code = \"One\", custom_options = \"One!\""));
  EXPECT_THAT(text, ::testing::HasSubstr("custom_code = \"Two\", custom_options = \"Two!\""));
}

TEST_F(MergeTest, ErrorsNameThePorts) {
  step("add", "x", "a", 1);
  add("graph @main(%p: f32[2], %q: f32[2]) -> (\"y\": f32[2]) {\n  %y = circle.add(%p, %q)\n"
      "  return %y\n}");
  EXPECT_EQ(merge(models, {}).error().code, "toolkit.merge.connect");
  models.clear();
  step("add", "x", "a", 1);
  add("graph @main(%a: f32[3]) -> (\"y\": f32[3]) {\n  %y = circle.relu(%a)\n  return %y\n}");
  EXPECT_EQ(merge(models, {}).error().code, "toolkit.merge.type");
  models.clear();
  step("add", "x", "a", 1);
  step("add", "b", "c", 1);
  MergeOptions options;
  options.connect = {{"a", "nothing"}};
  EXPECT_EQ(merge(models, options).error().code, "toolkit.merge.connect");
}

} // namespace
} // namespace chute::toolkit

#include "toolkit/cleanup.h"

#include "circle/ops.h"
#include "ir/text.h"
#include "ir/verifier.h"

#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

using ::testing::ElementsAre;

class CleanupTest : public ::testing::Test {
protected:
  void load(std::string_view text) {
    circle::register_dialect();
    auto g = ir::parse(ctx, text);
    ASSERT_TRUE(g) << g.error().message;
    graph = std::move(*g);
  }
  ir::Context ctx;
  std::unique_ptr<ir::Graph> graph;
};

TEST_F(CleanupTest, DropsWhatNobodyUses) {
  load(R"(graph @main(%x: f32[4], %unused: f32[4]) -> ("o": f32[4]) {
  %k = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : f32[4]
  %a = circle.relu(%x) : f32[4]
  %b = circle.tanh(%a) : f32[4]
  %c = circle.mul(%b, %k) : f32[4]
  return %a
})");
  const auto r = cleanup(*graph);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->dead_operators, 2u);
  EXPECT_EQ(r->dead_by_name.at("circle.mul"), 1u);
  EXPECT_EQ(r->unused_constants, 1u);
  EXPECT_EQ(graph->inputs().size(), 2u);
  CleanupOptions options;
  options.prune_inputs = true;
  EXPECT_THAT(cleanup(*graph, options)->pruned_inputs, ElementsAre("unused"));
  EXPECT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(graph->body().num_args(), 1u);
  Diagnostics d;
  ir::verify(*graph, d);
  EXPECT_FALSE(d.has_errors());
}

TEST_F(CleanupTest, A42_EffectsAndTheInterfaceStay) {
  load(R"(graph @main(%x: f32[4], %y: f32[4]) -> ("o": f32[4]) {
  %a = circle.custom(%y) {custom_code = "Log", custom_options = ""} : f32[4]
  %b = circle.relu(%x) : f32[4]
  %dead = circle.tanh(%x) : f32[4]
  return %b
})");
  const auto r = cleanup(*graph);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->dead_operators, 1u);
  EXPECT_NE(ir::print(*graph).find("circle.custom"), std::string::npos);
  EXPECT_EQ(graph->inputs().size(), 2u);
}

} // namespace
} // namespace chute::toolkit

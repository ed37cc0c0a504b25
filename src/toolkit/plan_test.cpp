#include "toolkit/plan.h"

#include "circle/ops.h"
#include "ir/text.h"

#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

class PlanTest : public ::testing::Test {
protected:
  void SetUp() override { circle::register_dialect(); }
  PlanReport plan_of(const std::string &text, PlanOptions options = {}) {
    auto g = ir::parse(ctx, text);
    EXPECT_TRUE(g) << (g ? "" : g.error().message);
    PlanReport r = plan(**g, options);
    check(r);
    return r;
  }
  /// What any placement has to hold: no two tensors that live together overlap, and no more memory
  /// than without reuse, no less than what lives at once.
  static void check(const PlanReport &r) {
    EXPECT_GE(r.arena, r.lower_bound);
    EXPECT_LE(r.arena, r.total);
    for (size_t i = 0; i < r.tensors.size(); ++i)
      for (size_t k = 0; k < i; ++k) {
        const PlanTensor &s = r.tensors[i], &t = r.tensors[k];
        if (s.aligned && t.aligned && s.first <= t.last && t.first <= s.last) {
          EXPECT_TRUE(s.offset + s.aligned <= t.offset || t.offset + t.aligned <= s.offset)
              << s.name << " and " << t.name;
        }
      }
  }
  ir::Context ctx;
};

TEST_F(PlanTest, AChainNeedsTwoTensors) {
  std::string text = "graph @main(%x: f32[16]) -> (\"o\": f32[16]) {\n  %v0 = circle.relu(%x)\n";
  for (int i = 0; i < 9; ++i)
    text += "  %v" + std::to_string(i + 1) + " = circle.tanh(%v" + std::to_string(i) + ")\n";
  const auto r = plan_of(text + "  return %v9\n}");
  EXPECT_EQ(r.lower_bound, 128u);
  EXPECT_EQ(r.arena, 128u);
  EXPECT_EQ(r.total, 11u * 64);
  EXPECT_EQ(r.live.size(), 10u);
  PlanOptions options;
  options.in_place = true;
  // All but the input's own step work in the memory of their operand.
  EXPECT_EQ(plan_of(text + "  return %v9\n}", options).tensors.size(), 2u);
}

TEST_F(PlanTest, LivesAreFromDefinitionToLastUse) {
  const auto r = plan_of(R"(graph @main(%x: f32[16]) -> ("a": f32[16], "d": f32[16]) {
  %a = circle.relu(%x)
  %b = circle.tanh(%x)
  %c = circle.add(%a, %b)
  %d = circle.logistic(%c)
  return %a, %d
})");
  ASSERT_EQ(r.tensors.size(), 5u);
  EXPECT_EQ(r.tensors[0].name, "x");
  EXPECT_EQ(r.tensors[0].last, 1u);
  EXPECT_EQ(r.tensors[1].last, 3u); // an output stays to the end
  EXPECT_TRUE(r.tensors[1].output);
  EXPECT_EQ(r.tensors[2].last, 2u);
  EXPECT_EQ(r.lower_bound, 3u * 64);
}

TEST_F(PlanTest, ViewsShareMemory) {
  const std::string text = R"(graph @main(%x: f32[16]) -> ("o": f32[4,4]) {
  %s = core.constant dense<[4, 4]> : i32[2]
  %a = circle.relu(%x)
  %b = circle.reshape(%a, %s) {new_shape = [4, 4]}
  %c = circle.tanh(%b)
  return %c
})";
  const auto r = plan_of(text);
  EXPECT_EQ(r.aliased, 1u);
  EXPECT_EQ(r.tensors.size(), 3u);
  EXPECT_EQ(r.constants, 8u);
  PlanOptions options;
  options.alias_views = false;
  EXPECT_EQ(plan_of(text, options).tensors.size(), 4u);
}

TEST_F(PlanTest, LargestFirstFillsGaps) {
  // Sizes and lives of several kinds; check() does the work.
  std::string text = "graph @main(%x: f32[64]) -> (\"o\": f32[64]) {\n";
  const int widths[] = {64, 1024, 17, 300, 5};
  std::string last = "x";
  for (int i = 0; i < 60; ++i) {
    const std::string w = std::to_string(widths[i % 5]), n = std::to_string(i);
    text += "  %s" + n + " = core.constant dense<[" + w + "]> : i32[1]\n";
    text += "  %r" + n + " = circle.custom(%" + last +
            (i > 7 ? ", %r" + std::to_string(i - 7) : "") +
            ") {custom_code = \"c\", custom_options = \"\"} : f32[" + w + "]\n";
    last = "r" + n;
  }
  text += "  %o = circle.custom(%" + last +
          ") {custom_code = \"c\", custom_options = \"\"} : f32[64]\n  return %o\n}";
  const auto r = plan_of(text);
  EXPECT_LE(static_cast<double>(r.arena), 1.25 * static_cast<double>(r.lower_bound));
}

std::string chain(int n, bool outputs) {
  std::string head = "graph @main(%x: f32[16]) -> (", tail = "  return ";
  std::string body, last = "x";
  for (int i = 0; i < n; ++i) {
    const std::string name = "v" + std::to_string(i);
    body += "  %" + name + " = circle.add(%" + last + ", %x)\n";
    last = name;
    if (outputs || i == n - 1) {
      const bool first = head.back() == '(';
      head += (first ? "\"" : ", \"") + name + "\": f32[16]";
      tail += (first ? "%" : ", %") + name;
    }
  }
  return head + ") {\n" + body + tail + "\n}";
}

TEST_F(PlanTest, CostIsLinearEvenWhenAllTensorsLiveTogether) {
  for (bool outputs : {false, true}) {
    u64 before = 0;
    for (int n : {1000, 2000, 4000}) {
      auto g = ir::parse(ctx, chain(n, outputs));
      ASSERT_TRUE(g);
      const u64 visited = plan(**g).work.ops_visited;
      if (before) {
        EXPECT_LE(static_cast<double>(visited), 2.2 * static_cast<double>(before)) << outputs;
      }
      before = visited;
    }
  }
}

TEST_F(PlanTest, PictureIsXml) {
  auto r = plan_of(chain(10, false));
  r.tensors[1].name = "<a&\"b\">\x01\xff";
  const std::string svg = plan_svg(r, "model <1>");
  EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
  EXPECT_THAT(svg, ::testing::HasSubstr("&lt;a&amp;&quot;b&quot;&gt;??"));
  EXPECT_THAT(svg, ::testing::HasSubstr("model &lt;1&gt;"));
  EXPECT_THAT(plan_svg(r, "m", 0), ::testing::HasSubstr("polyline"));
  EXPECT_THAT(
      plan_svg(plan_of("graph @main(%x: f32[4]) -> (\"o\": f32[4]) {\n  return %x\n}"), "m"),
      ::testing::EndsWith("</svg>\n"));
}

} // namespace
} // namespace chute::toolkit

#include "toolkit/extract.h"

#include "circle/ops.h"
#include "ir/text.h"
#include "ir/verifier.h"

#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

using ::testing::ElementsAre;

/// x → a → b ┐
///     └→ c ─┴→ d → e        two constants, one of them shared
constexpr std::string_view kDiamond = R"(graph @main(%x: f32[4], %y: f32[4]) -> ("out": f32[4]) {
  %k = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : f32[4]
  %m.a = circle.add(%x, %k) : f32[4]
  %m.b = circle.relu(%m.a) : f32[4]
  %m.c = circle.mul(%m.a, %k) : f32[4]
  %n.d = circle.add(%m.b, %m.c) : f32[4]
  %n.e = circle.sub(%n.d, %y) : f32[4]
  return %n.e
})";

class ExtractTest : public ::testing::Test {
protected:
  void SetUp() override {
    circle::register_dialect();
    load(kDiamond);
  }
  void load(std::string_view text) {
    auto g = ir::parse(ctx, text);
    ASSERT_TRUE(g) << g.error().message;
    graph = std::move(*g);
  }
  ExtractReport cut(const Selection &s) {
    auto r = extract(*graph, s);
    EXPECT_TRUE(r) << (r ? "" : r.error().message);
    Diagnostics d;
    ir::verify(*graph, d);
    EXPECT_FALSE(d.has_errors()) << (d.all().empty() ? "" : d.all()[0].message);
    return r ? *r : ExtractReport();
  }
  std::string code(const Selection &s) {
    const std::string before = ir::print(*graph);
    auto r = extract(*graph, s);
    EXPECT_FALSE(r);
    EXPECT_EQ(ir::print(*graph), before);
    return r ? "" : r.error().code;
  }
  ir::Context ctx;
  std::unique_ptr<ir::Graph> graph;
};

TEST_F(ExtractTest, RangeMakesItsOwnInterface) {
  Selection s;
  s.ops = " 1 , 2-3";
  const ExtractReport r = cut(s);
  EXPECT_EQ(r.operators, 3u);
  EXPECT_THAT(r.inputs, ElementsAre("m.a"));
  EXPECT_THAT(r.outputs, ElementsAre("n.d"));
  EXPECT_NE(ir::print(*graph).find("core.constant"), std::string::npos);
}

TEST_F(ExtractTest, OriginalInputsComeFirstAndOutputsKeepTheirNames) {
  Selection s;
  s.ops = "4";
  const ExtractReport r = cut(s);
  EXPECT_THAT(r.inputs, ElementsAre("y", "n.d"));
  EXPECT_THAT(r.outputs, ElementsAre("out"));
}

TEST_F(ExtractTest, AResultThatLeavesAndStaysIsAnOutput) {
  Selection s;
  s.ops = "0:1";
  EXPECT_THAT(cut(s).outputs, ElementsAre("m.a", "m.b"));
}

TEST_F(ExtractTest, BetweenTensors) {
  Selection s;
  s.from = {"m.a"};
  s.to = {"m.c"};
  const ExtractReport r = cut(s);
  EXPECT_EQ(r.operators, 1u);
  EXPECT_THAT(r.inputs, ElementsAre("m.a"));
}

TEST_F(ExtractTest, ModulesAndNames) {
  Selection s;
  s.modules = {"m"};
  EXPECT_EQ(cut(s).operators, 3u);
  load(kDiamond);
  s = {};
  s.names = {"*.[bc]"};
  EXPECT_EQ(cut(s).operators, 2u);
  load(kDiamond);
  s = {};
  s.names = {"\\.b$"};
  s.regex = true;
  EXPECT_EQ(cut(s).operators, 1u);
}

TEST_F(ExtractTest, ModulesEndAtSeparators) {
  load(R"(graph @main(%x: f32[4]) -> ("o": f32[4]) {
  %blk1.a = circle.relu(%x) : f32[4]
  %blk10.a = circle.relu(%blk1.a) : f32[4]
  return %blk10.a
})");
  Selection s;
  s.modules = {"blk1"};
  EXPECT_EQ(cut(s).operators, 1u);
}

TEST_F(ExtractTest, ErrorsSayWhatIsWrong) {
  const auto with = [](auto member, auto value) {
    Selection s;
    s.*member = value;
    return s;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(code({}), "toolkit.select.none");
  for (const char *range : {"5", "3-1", "x", "1-", "1;2", ",", "99999999999999999999"})
    EXPECT_EQ(code(with(&Selection::ops, range)), "toolkit.select.ops") << range;
  EXPECT_EQ(code(with(&Selection::names, List{"zz*"})), "toolkit.select.unmatched");
  EXPECT_EQ(code(with(&Selection::modules, List{"m.a", "q"})), "toolkit.select.unmatched");
  EXPECT_EQ(code(with(&Selection::from, List{"nope"})), "toolkit.select.unmatched");
  Selection s;
  s.from = {"n.d"};
  s.to = {"m.a"};
  EXPECT_EQ(code(s), "toolkit.select.empty");
}

TEST_F(ExtractTest, A72_TensorsOfOneNameAreAmbiguousNotTheSame) {
  load(R"(graph @main(%x: f32[4]) -> ("o": f32[4]) {
  %a = circle.relu(%x) : f32[4]
  %b = circle.tanh(%a) : f32[4]
  return %b
})");
  // The text form makes names unique; files need not.
  for (ir::Op *op : numbered_ops(*graph))
    graph->set_name(op->result(), ctx.intern("same"));
  Selection s;
  s.to = {"same"};
  EXPECT_EQ(code(s), "toolkit.select.ambiguous");
  s = {};
  s.ops = "1";
  const ExtractReport r = cut(s);
  EXPECT_THAT(r.inputs, ElementsAre("same"));
  EXPECT_THAT(r.outputs, ElementsAre("o"));
}

TEST_F(ExtractTest, VariablesStayWithTheirUsers) {
  load(R"(graph @main(%x: f32[2]) -> ("o": f32[2]) {
  %s = core.state() {name = "s", value = dense<[0.0, 0.0]> : f32[2]} : f32[2]
  %a = circle.add(%x, %s) : f32[2]
  %b = circle.relu(%a) : f32[2]
  return %b
})");
  Selection s;
  s.ops = "0";
  EXPECT_THAT(cut(s).inputs, ElementsAre("x"));
  EXPECT_NE(ir::print(*graph).find("core.state"), std::string::npos);
}

TEST_F(ExtractTest, A44_OnlyTheUsesOfWhatIsCutChange) {
  // Two custom operators of one code; the second is left out, and its users alone get an input.
  load(R"(graph @main(%x: f32[4]) -> ("o": f32[4]) {
  %a = circle.custom(%x, %x) {custom_code = "MatMul", custom_options = ""} : f32[4]
  %b = circle.custom(%x, %a) {custom_code = "MatMul", custom_options = ""} : f32[4]
  %c = circle.add(%a, %b) : f32[4]
  return %c
})");
  Selection s;
  s.ops = "0,2";
  const ExtractReport r = cut(s);
  EXPECT_THAT(r.inputs, ElementsAre("x", "b"));
  EXPECT_THAT(r.outputs, ElementsAre("a", "o"));
  const std::string text = ir::print(*graph);
  EXPECT_NE(text.find("circle.custom(%x, %x)"), std::string::npos);
  EXPECT_NE(text.find("circle.add(%a, %b)"), std::string::npos);
}

TEST_F(ExtractTest, CostIsLinear) {
  u64 before = 0;
  for (int n : {1000, 2000, 4000}) {
    std::string text = "graph @main(%x: f32[4]) -> (\"o\": f32[4]) {\n";
    std::string last = "x";
    for (int i = 0; i < n; ++i) {
      const std::string name = "v" + std::to_string(i);
      text += "  %" + name + " = circle.add(%" + last + ", %x) : f32[4]\n";
      last = name;
    }
    load(text + "  return %" + last + "\n}");
    Selection s;
    s.from = {"v" + std::to_string(n / 4)};
    s.to = {"v" + std::to_string(n / 2)};
    const u64 visited = cut(s).work.ops_visited;
    if (before) {
      EXPECT_LE(static_cast<double>(visited), 2.05 * static_cast<double>(before));
    }
    before = visited;
  }
}

} // namespace
} // namespace chute::toolkit

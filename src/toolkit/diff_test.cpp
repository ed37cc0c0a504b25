#include "toolkit/diff.h"

#include "circle/ops.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DiffTest : public ::testing::Test {
protected:
  void SetUp() override { circle::register_dialect(); }
  std::unique_ptr<ir::Graph> load(const std::string &text) {
    auto g = ir::parse(ctx, text);
    EXPECT_TRUE(g) << (g ? "" : g.error().message) << "\n" << text;
    return g ? std::move(*g) : nullptr;
  }
  /// Lines of operators over %x: f32[4] and the constants k, m; the last one is returned.
  std::string program(const std::vector<std::string> &lines, const std::string &last) {
    std::string text = "graph @main(%x: f32[4], %y: f32[4]) -> (\"o\": f32[4]) {\n"
                       "  %k = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : f32[4]\n"
                       "  %m = core.constant dense<[5.0, 6.0, 7.0, 8.0]> : f32[4]\n";
    for (const std::string &l : lines)
      text += "  " + l + "\n";
    return text + "  return %" + last + "\n}";
  }
  DiffReport compare(const std::string &a, const std::string &b, DiffOptions options = {}) {
    before = load(a);
    after = load(b);
    return diff(*before, *after, options);
  }
  static std::vector<std::string> marks(const DiffReport &r) {
    std::vector<std::string> out;
    for (const Change &c : r.changes)
      out.push_back(std::string(1, "-+~"[static_cast<size_t>(c.kind)]) + c.op.substr(7));
    return out;
  }
  ir::Context ctx;
  std::unique_ptr<ir::Graph> before, after;
};

const std::vector<std::string> kChain = {"%a = circle.add(%x, %k)", "%b = circle.relu(%a)",
                                         "%c = circle.mul(%b, %m)", "%d = circle.tanh(%c)",
                                         "%e = circle.sub(%d, %y)"};

TEST_F(DiffTest, NamesAndOrderDoNotCount) {
  // The same with other names and another order of independent operators.
  const auto r = compare(
      program({"%p = circle.relu(%x)", "%q = circle.tanh(%y)", "%z = circle.add(%p, %q)"}, "z"),
      program({"%t = circle.tanh(%y)", "%s = circle.relu(%x)", "%u = circle.add(%t, %s)"}, "u"));
  EXPECT_TRUE(r.equal()) << r.changes.size();
  EXPECT_EQ(r.same, 3u);
  DiffOptions options;
  options.names = true;
  EXPECT_FALSE(
      compare(program(kChain, "e"),
              program({"%A = circle.add(%x, %k)", "%b = circle.relu(%A)", "%c = circle.mul(%b, %m)",
                       "%d = circle.tanh(%c)", "%e = circle.sub(%d, %y)"},
                      "e"),
              options)
          .equal());
}

TEST_F(DiffTest, OneOperatorMore) {
  auto lines = kChain;
  lines[3] = "%n = circle.logistic(%c)\n  %d = circle.tanh(%n)";
  const auto r = compare(program(kChain, "e"), program(lines, "e"));
  EXPECT_THAT(marks(r), ElementsAre("+logistic", "~tanh"));
  EXPECT_EQ(r.same, 4u);
  EXPECT_EQ(r.changes[1].details[0].what, "operand 0");
  const auto back = compare(program(lines, "e"), program(kChain, "e"));
  EXPECT_EQ(back.removed, 1u);
  EXPECT_EQ(back.changed, 1u);
}

TEST_F(DiffTest, AnotherOperatorInItsPlace) {
  auto lines = kChain;
  lines[1] = "%b = circle.relu6(%a)";
  const auto r = compare(program(kChain, "e"), program(lines, "e"));
  EXPECT_EQ(r.removed, 1u);
  EXPECT_EQ(r.added, 1u);
  EXPECT_EQ(r.same + r.changed, 4u);
}

TEST_F(DiffTest, TwoEditsWithAStretchBetweenThem) {
  auto lines = kChain;
  lines[0] = "%a = circle.add(%x, %k) {fused_activation_function = \"RELU6\"}";
  lines[4] = "%e = circle.sub(%d, %y) {fused_activation_function = \"RELU\"}";
  const auto r = compare(program(kChain, "e"), program(lines, "e"));
  EXPECT_THAT(marks(r), ElementsAre("~add", "~sub"));
  EXPECT_EQ(r.changes[0].details[0].what, "attribute fused_activation_function");
  EXPECT_EQ(r.same, 3u);
}

TEST_F(DiffTest, ConstantsByContent) {
  const auto with = [&](const char *value) {
    std::string text = program(kChain, "e");
    text.replace(text.find("3.0"), 3, value);
    return text;
  };
  const auto r = compare(with("3.0"), with("3.5"));
  EXPECT_THAT(r.changes, IsEmpty());
  ASSERT_THAT(r.constants, SizeIs(1));
  EXPECT_EQ(r.constants[0].max_abs, 0.5);
  EXPECT_EQ(r.constants[0].differing, 1);
  EXPECT_FALSE(r.equal());
}

TEST_F(DiffTest, A22_EqualConstantsOfTwoNamesAreTheSame) {
  // One constant used twice, against two equal ones.
  const auto r = compare(
      "graph @main(%x: f32[1]) -> (\"o\": f32[1]) {\n  %k = core.constant dense<[2.0]> : f32[1]\n"
      "  %a = circle.add(%x, %k)\n  %b = circle.mul(%a, %k)\n  return %b\n}",
      "graph @main(%x: f32[1]) -> (\"o\": f32[1]) {\n  %k = core.constant dense<[2.0]> : f32[1]\n"
      "  %l = core.constant dense<[2.0]> : f32[1]\n"
      "  %a = circle.add(%x, %k)\n  %b = circle.mul(%a, %l)\n  return %b\n}");
  EXPECT_TRUE(r.equal());
}

TEST_F(DiffTest, TypesAndInterface) {
  const auto r = compare("graph @main(%x: f32[4]) -> (\"o\": f32[4]) {\n  %a = circle.relu(%x)\n"
                         "  return %a\n}",
                         "graph @main(%z: f32[8]) -> (\"o\": f32[8]) {\n  %a = circle.relu(%z)\n"
                         "  return %a\n}");
  EXPECT_THAT(r.interface, SizeIs(3)); // input's name and type, output's type
  EXPECT_THAT(marks(r), ElementsAre("~relu"));
}

TEST_F(DiffTest, A21_NamesAreLabelsNotKeys) {
  // Two tensors swap their names: nothing else changes, and nothing else is reported.
  const auto r = compare(program({"%a = circle.relu(%x)", "%b = circle.tanh(%a)"}, "b"),
                         program({"%b = circle.relu(%x)", "%a = circle.tanh(%b)"}, "a"));
  EXPECT_TRUE(r.equal());
}

TEST_F(DiffTest, A43_CustomOperatorsByTheirCode) {
  const auto with = [&](const char *code) {
    return program({std::string("%a = circle.custom(%x) {custom_code = \"") + code +
                        "\", custom_options = \"\"} : f32[4]",
                    "%b = circle.relu(%a)"},
                   "b");
  };
  EXPECT_TRUE(compare(with("One"), with("One")).equal());
  const auto r = compare(with("One"), with("Two"));
  EXPECT_EQ(r.removed, 1u);
  EXPECT_EQ(r.added, 1u);
}

/// A chain of blocks; block `odd` has one operator more.
std::string blocks(int n, int odd) {
  std::string text = "graph @main(%x: f32[4]) -> (\"o\": f32[4]) {\n";
  std::string last = "x";
  for (int i = 0; i < n; ++i) {
    const std::string s = std::to_string(i);
    text += "  %w" + s + " = core.constant dense<[" + s + ".0, 1.0, 2.0, 3.0]> : f32[4]\n";
    text += "  %a" + s + " = circle.mul(%" + last + ", %w" + s + ")\n";
    text += "  %b" + s + " = circle.relu(%a" + s + ")\n";
    std::string tail = "b" + s;
    if (i == odd) {
      text += "  %c = circle.tanh(%b" + s + ")\n";
      tail = "c";
    }
    text += "  %d" + s + " = circle.add(%" + tail + ", %" + last + ")\n";
    last = "d" + s;
  }
  return text + "  return %" + last + "\n}";
}

TEST_F(DiffTest, OneEditInManyBlocksIsOneAndCostIsLinear) {
  u64 visited = 0;
  for (int n : {250, 500, 1000}) {
    const auto r = compare(blocks(n, -1), blocks(n, n / 2));
    EXPECT_EQ(r.added, 1u);
    EXPECT_EQ(r.removed, 0u);
    EXPECT_EQ(r.changed, 1u);
    if (visited) {
      EXPECT_LE(static_cast<double>(r.work.ops_visited), 2.05 * static_cast<double>(visited));
    }
    visited = r.work.ops_visited;
  }
}

TEST_F(DiffTest, EveryBlockEditedIsStillAligned) {
  std::string edited = blocks(50, -1);
  for (size_t at = 0; (at = edited.find("relu", at)) != std::string::npos; at += 8)
    edited.replace(at, 4, "logistic");
  const auto r = compare(blocks(50, -1), edited);
  EXPECT_EQ(r.added, 50u);
  EXPECT_EQ(r.removed, 50u);
  EXPECT_EQ(r.same + r.changed, 100u);
}

} // namespace
} // namespace chute::toolkit

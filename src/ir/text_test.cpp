#include "ir/text.h"

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/sym_table.h"
#include "ir/verifier.h"

#include <gtest/gtest.h>

namespace chute::ir {
namespace {

class TextTest : public ::testing::Test {
protected:
  TextTest() { aten::register_dialect(); }
  std::unique_ptr<Graph> read(std::string_view text) {
    auto g = parse(ctx, text);
    if (!g) {
      ADD_FAILURE() << to_text(g.error());
      return std::make_unique<Graph>(ctx);
    }
    return std::move(*g);
  }
  /// Text that is printed as it was written.
  void expect_same(std::string_view text) { EXPECT_EQ(print(*read(text)), text); }
  void expect_error(std::string_view text, std::string_view where, std::string_view message) {
    const auto g = parse(ctx, text);
    ASSERT_FALSE(g.has_value()) << text;
    EXPECT_EQ(g.error().object, where) << to_text(g.error());
    EXPECT_NE(g.error().message.find(message), std::string::npos) << to_text(g.error());
    EXPECT_EQ(g.error().kind, ErrorKind::BadInput);
  }
  Context ctx;
};

TEST_F(TextTest, WholeGraph) {
  expect_same(
      R"(graph @main(%x: f32[1,3,s77,224], literal 2 {name = "k"}, %cache: f32[4] {kind = state, name = "c"}) -> ("y": f32[1,3,s77,224], buffer("h.cache") "m": f32[4], literal(none) "n") {
  sym s77 in [2, 1024]
  const #0 = dense<[0.5, -1.0]> : f32[2]
  %w = core.constant #0
  %0 = core.constant #0
  %1 = aten.relu.default(%x) : f32[1,3,s77,224] loc("relu", "relu_1" in "layers.0" type "torch.nn.ReLU" at "model.py:12")
  %y = aten.cat.default(%1, %1) {dim = 2} : f32[1,3,2*s77,224]
  %2 = aten.convolution.default(%x, %w, none) {stride = [1, 1], padding = [s77, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1} : f32[1,3,s77,224]
  return %1, %cache
}
)");
}

TEST_F(TextTest, Types) {
  expect_same(
      R"(graph @types(%0: f32[], %1: bool[2], %2: bool, %3: none, %4: none[1], %5: int, %6: float, %7: opaque, %8: i8[4] quant(0.5:-3), %9: i8[2,3] quant(axis=1, [0.5, 0.25:7, 1e-40]), %10: i4[4,64] quant(axis=1, block=32, [1.0, 2.0, nan, inf, 0.1, 3.4028235e+38, 1e-45, 2.0:1]), %11: mxint8[32] mx(axis=0, block=32), %12: f8e4m3fn[0], %13: string[1], %14: f32[floordiv(s0 - 1, 2) + 3]) -> () {
  sym s0 in [0, inf]
}
)");
}

TEST_F(TextTest, AttributesOfEveryKind) {
  expect_same(R"(graph @attrs(%x: f32[2]) -> () {
  sym s0 in [0, inf]
  sym true in [0, inf]
  core.unregistered(%x, none) {target = "my.op", arg_names = ["a", ""], args = [operand(0), none, 3, -9223372036854775808, 9223372036854775807, 0.5, 1e+300, nan, -inf, nan(0x7ff8000000000001), nan(0xfff8000000000000), true, "q\"\\\n\x01é", f32, element(none), ints[1, s0], ints[], floats[1.0, -0.0], bools[true, false], strings["a", "b"], type(f32[2]), dense<[[1], [2]]> : i64[2,1], complex(0.0, -1.5), [], [[], [1, [operand(1)]], region(0)], 2*s0 - 1, sym(true)]} : ()
}
)");
}

TEST_F(TextTest, SymbolsNamedAsKeywords) {
  expect_same(R"(graph @m() -> () {
  sym inf in [0, inf]
  sym n in [0, inf]
  %0 = core.size() {value = sym(-inf + n)} : int
  %1 = core.size() {value = 2*inf} : int
  %2 = core.size() {value = sym(inf)} : int
  return
}
)");
}

TEST_F(TextTest, ListsTakeTheKindOfTheirField) {
  const auto g = read(R"(graph @main(%x: f32[2]) {
    core.unregistered() {target = "t", arg_names = [], args = [1, 2]} : ()
    %0 = aten.permute.default(%x) {dims = [0, s1]} : f32[2]
    %1 = aten.permute.default(%x) {dims = 3} : f32[2]
  })");
  const Op *first = g->body().front();
  EXPECT_EQ(first->attr(1).kind(), AttrKind::Strings);
  EXPECT_EQ(first->attr(2).kind(), AttrKind::List);
  EXPECT_EQ(first->next()->attr(0), ctx.ints_attr({0, ctx.sym().symbol("s1")}));
  EXPECT_EQ(first->next()->next()->attr(0), ctx.ints_attr({3}));
}

TEST_F(TextTest, Constants) {
  expect_same(R"(graph @constants() -> () {
  %0 = core.constant dense<[[1, 2], [3, -4]]> : i32[2,2]
  %1 = core.constant dense<1.5> : f16[]
  %2 = core.constant dense<[true, false]> : bool[2]
  %3 = core.constant dense<[18446744073709551615]> : u64[1]
  %4 = core.constant dense<[0.1, nan, inf, -0.0, raw("0100807f"), nan(0x7ff8000020000000), 1e-45]> : f32[7]
  %5 = core.constant dense<[]> : f32[0,3]
  %6 = core.constant splat<2.5> : bf16[1000000,3]
  %7 = core.constant dense<[complex(1.0, -2.0)]> : c64[1]
  %8 = core.constant dense<[-8, 7]> : i4[2] quant(0.1)
  %9 = core.constant dense<[raw("10")]> : u4[1]
}
)");
}

TEST_F(TextTest, GeneratedConstants) {
  const auto g = read(R"(graph @m() {
    %0 = core.constant iota : f16[4]
    %1 = core.constant rand(7, -1.0, 1.0) : f64[2]
    %2 = core.constant rand(7, 0, 3) : i8[16]
    %3 = core.constant hex<"0102030400"> : u8[5]
    %4 = core.constant dense<[1, 2, 3, 4]> : i32[2,2]
    %5 = core.constant splat<0x1.8p3> : f64[2] // 12
    %6 = core.constant rand(1, 0, 1) : bool[4]
  })");
  EXPECT_EQ(print(*g), R"(graph @m() -> () {
  %0 = core.constant dense<[0.0, 1.0, 2.0, 3.0]> : f16[4]
  %1 = core.constant dense<[-0.22034050321745702, -0.9664234109436878]> : f64[2]
  %2 = core.constant dense<[3, 0, 2, 3, 2, 1, 2, 2, 1, 1, 3, 0, 2, 0, 2, 0]> : i8[16]
  %3 = core.constant dense<[1, 2, 3, 4, 0]> : u8[5]
  %4 = core.constant dense<[[1, 2], [3, 4]]> : i32[2,2]
  %5 = core.constant splat<12.0> : f64[2]
  %6 = core.constant dense<[true, true, false, true]> : bool[4]
}
)");
  EXPECT_NE(print(*g, {.dense_elements = 4}).find("hex<\"0102030400\"> : u8[5]"),
            std::string::npos);
}

TEST_F(TextTest, ElidedConstantsReadAsConstantsWithoutData) {
  const auto g = read("graph @m() { %0 = core.constant iota : i32[100] "
                      "%1 = core.constant dense<[1]> : i32[1] }");
  const std::string text = print(*g, {.elide_bytes = 4});
  EXPECT_NE(text.find("elided<\""), std::string::npos);
  EXPECT_NE(text.find(", 400> : i32[100]"), std::string::npos);
  EXPECT_NE(text.find("dense<[1]>"), std::string::npos);
  const auto again = read(text);
  EXPECT_FALSE(again->constants()[0].has_data);
  EXPECT_NE(print(*again).find("core.constant nodata : i32[100]"), std::string::npos);
}

TEST_F(TextTest, Regions) {
  expect_same(R"(graph @main(%p: bool[], %x: f32[2]) -> ("y": f32[2]) {
  %0 = core.unregistered(%p, %x) {target = "cond", arg_names = [], args = [region(0), region(1)]} do (%a: f32[2]) {
    %1 = core.unregistered(%a) {target = "inner", arg_names = [], args = []} do () {
      return %x
    } : f32[2]
    return %1
  } do (%b: f32[2]) {
    return %b
  } : f32[2] loc("cond")
  return %0
}
)");
}

TEST_F(TextTest, NamesInRegionsEndWithThem) {
  const auto g = read(R"(graph @main(%x: f32[2]) {
    core.unregistered() {target = "a", arg_names = [], args = []} do (%a: f32[2]) { return %a }
      do (%a: f32[3]) { return %a } : ()
    return %x
  })");
  EXPECT_EQ(g->outputs().size(), 1u);
  EXPECT_EQ(g->outputs()[0].name, "x");
  expect_error("graph @m() { core.unregistered() {target = \"a\", arg_names = [], args = []}\n"
               "do (%a: f32[2]) { return %a } : ()\n return %a }",
               "3:9", "undefined");
}

TEST_F(TextTest, Names) {
  expect_same(
      R"(graph @"a graph"(%"0": f32[2], %a.b$c: f32[2] {name = "other"}, %d: f32[2] {name = ""}) -> ("": f32[2], "b" = 0: f32[2]) {
  return %"0", %d
}
)");
  Graph g(ctx);
  g.add_argument(g.body(), ctx.tensor_type(ElementType::F32, {1}), ctx.intern("x"));
  g.add_argument(g.body(), ctx.tensor_type(ElementType::F32, {2}), ctx.intern("x"));
  EXPECT_EQ(print(g), "graph @main(bare %x: f32[1], bare %0: f32[2]) -> () {\n}\n");
}

TEST_F(TextTest, InputsInAnotherOrderThanArguments) {
  expect_same(
      R"(graph @main(%b: f32[2] {input = 2}, %a: f32[3] {input = 0}, literal 7 {name = "k", input = 1}) -> () {
}
)");
  expect_error("graph @m(%a: f32[1] {input = 1}) {}", "1:10", "positions");
}

TEST_F(TextTest, SegmentsAreBrackets) {
  const OpDef *index_put = Registry::global().find("aten.index_put.default");
  ASSERT_NE(index_put, nullptr);
  expect_same(R"(graph @main(%x: f32[2], %i: i64[1], %v: f32[1]) -> () {
  %0 = aten.index_put.default(%x, [none, %i], %v) : f32[2]
}
)");
}

TEST_F(TextTest, Errors) {
  expect_error("", "1:1", "'graph' expected");
  expect_error("graph @m(%x: f33[2]) {}", "1:14", "no element type");
  expect_error("graph @m(%x: f32[-2]) {}", "1:18", "negative");
  expect_error("graph @m() {\n  %0 = aten.relu.default(%y)\n}", "2:26", "undefined");
  expect_error("graph @m() {\n  %0 = aten.rleu.default()\n}", "2:8", "unknown operator");
  expect_error("graph @m(%x: f32[2]) { %0 = aten.relu.default(%x) {a = 1} : f32[2] }", "1:52",
               "no attribute");
  expect_error("graph @m(%x: f32[2]) { %0 = aten.relu.default() : f32[2] }", "1:29", "operands");
  expect_error("graph @m(%x: f32[2]) { %0 = aten.relu.default(none) : f32[2] }", "1:29",
               "required");
  expect_error("graph @m(%x: f32[2]) { %0 = aten.permute.default(%x) {dims = 1.5} : f32[2] }",
               "1:62", "wrong kind");
  expect_error("graph @m(%x: f32[2]) { %0 = aten.permute.default(%x) : f32[2] }", "1:29",
               "missing");
  expect_error("graph @m(%x: f32[2], %x: f32[2]) {}", "1:22", "exists already");
  expect_error("graph @m() { %0 = core.constant dense<[1, 2]> : i32[3] }", "1:33", "3 elements");
  expect_error("graph @m() { %0 = core.constant dense<[1, 300]> : u8[2] }", "1:43", "fit");
  expect_error("graph @m() { %0 = core.constant iota : f32[99999999999] }", "1:33", "too large");
  expect_error("graph @m(%x: f32[2]) -> (\"y\": f32[3]) { return %x }", "1:26", "declared");
  expect_error("graph @m() {} x", "1:15", "after the end");
  expect_error("graph @m() {", "1:13", "'}' expected");
}

} // namespace
} // namespace chute::ir

#include "ir/verifier.h"

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/text.h"

#include <gtest/gtest.h>

namespace chute::ir {
namespace {

class VerifierTest : public ::testing::Test {
protected:
  VerifierTest() { aten::register_dialect(); }
  std::unique_ptr<Graph> read(std::string_view text) {
    auto g = parse(ctx, text);
    if (!g) {
      ADD_FAILURE() << to_text(g.error());
      return std::make_unique<Graph>(ctx);
    }
    return std::move(*g);
  }
  std::string codes(const Graph &g, const VerifyOptions &options = {}) {
    Diagnostics d;
    verify(g, d, options);
    std::string out;
    for (const Diagnostic &one : d.all())
      out += (out.empty() ? "" : " ") + one.code;
    return out;
  }
  std::string codes(std::string_view text, const VerifyOptions &options = {}) {
    return codes(*read(text), options);
  }
  Value *argument(Graph &g) {
    return g.add_argument(g.body(), ctx.tensor_type(ElementType::F32, {2}));
  }
  Op *relu(Graph &g, Value *x, Type type) {
    return g.create(aten::op::relu, std::span<Value *const>(&x, 1), {},
                    std::span<const Type>(&type, 1));
  }
  void finish(Graph &g, Value *v) { Builder(g, g.body()).ret(std::span<Value *const>(&v, 1)); }
  Context ctx;
};

TEST_F(VerifierTest, ValidGraphs) {
  EXPECT_EQ(codes("graph @m(%x: f32[2]) { return %x }"), "");
  EXPECT_EQ(codes("graph @m(%x: i8[2] quant(axis=0, [0.5:1, 0.25])) { "
                  "%0 = aten.relu.default(%x) : f32[2] return %0, %0, none }"),
            "ir.interface.output");
  EXPECT_EQ(codes(R"(graph @m(%x: f32[2]) -> (input("x"): f32[2]) {
    %0 = core.unregistered(%x) {target = "t", arg_names = [], args = [operand(0), region(0)]}
      do (%a: f32[2]) { %1 = aten.relu.default(%a) : f32[2] return %1, %x } : f32[2]
    return %0 })"),
            "");
}

TEST_F(VerifierTest, Order) {
  Graph g(ctx);
  Value *x = argument(g);
  Op *first = relu(g, x, x->type());
  Op *second = relu(g, first->result(), x->type());
  g.append(g.body(), second);
  g.append(g.body(), first);
  finish(g, first->result());
  Diagnostics d;
  verify(g, d);
  ASSERT_EQ(d.error_count(), 1u);
  EXPECT_EQ(d.all()[0].code, "ir.use.order");
  EXPECT_EQ(d.all()[0].object, "aten.relu.default");
}

TEST_F(VerifierTest, ValueOfAClosedRegion) {
  const auto g = read(R"(graph @m(%x: f32[2]) {
    core.unregistered(%x) {target = "t", arg_names = [], args = []}
      do (%a: f32[2]) { return %a } : ()
    return %x })");
  g->set_operand(g->return_op(), 0, g->body().front()->region(0)->arg(0));
  EXPECT_EQ(codes(*g), "ir.use.order");
}

TEST_F(VerifierTest, AgainstTheTable) {
  const auto one = [&](std::vector<Value *> operands, std::vector<Attr> attrs,
                       std::vector<Type> types, Graph &g) {
    Op *op = g.create(aten::op::permute, operands, attrs, types);
    g.append(g.body(), op);
    Builder(g, g.body()).ret({});
    return codes(g);
  };
  const Attr dims = ctx.ints_attr({0});
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x}, {dims}, {x->type()}, g), "");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x, x}, {dims}, {x->type()}, g), "ir.operand.count");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({nullptr}, {dims}, {x->type()}, g), "ir.operand.missing");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x}, {}, {x->type()}, g), "ir.attr.count");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x}, {Attr::of_float(1)}, {x->type()}, g), "ir.attr.type");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x}, {Attr::none()}, {x->type()}, g), "ir.attr.type");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x}, {dims}, {x->type(), x->type()}, g), "ir.result.count");
  }
  {
    Graph g(ctx);
    Value *x = argument(g);
    EXPECT_EQ(one({x}, {dims}, {Type()}, g), "ir.type.missing");
  }
}

TEST_F(VerifierTest, TypesAndQuantization) {
  EXPECT_EQ(codes("graph @m(%x: i8[2] quant(axis=1, [0.5, 0.5])) { return %x }"), "ir.type.quant");
  EXPECT_EQ(codes("graph @m(%x: i8[2] quant(axis=0, [0.5])) { return %x }"), "ir.type.quant");
  EXPECT_EQ(codes("graph @m(%x: i8[2] quant(-0.5)) { return %x }"), "ir.type.quant");
  EXPECT_EQ(codes("graph @m(%x: i8[2] quant([0.5, 1.0])) { return %x }"), "ir.type.quant");
  EXPECT_EQ(codes("graph @m(%x: i4[2,6] quant(axis=1, block=4, [1.0, 1.0, 1.0])) { return %x }"),
            "ir.type.quant");
  EXPECT_EQ(
      codes("graph @m(%x: i4[2,6] quant(axis=1, block=4, [1.0, 1.0, 1.0, 1.0])) { return %x }"),
      "");
  EXPECT_EQ(codes("graph @m(%x: mxint8[64] mx(axis=0, block=0)) { return %x }"), "ir.type.quant");
  Graph g(ctx);
  finish(g, g.add_argument(g.body(), ctx.tensor_type(ElementType::F32, {-1})));
  EXPECT_EQ(codes(g), "ir.type.dim");
}

TEST_F(VerifierTest, Constants) {
  Graph other(ctx);
  Builder from(other, other.body());
  Value *foreign = from.constant_i32(std::array<i32, 1>{1});
  Graph g(ctx);
  Builder b(g, g.body());
  b.constant_i32(std::array<i32, 2>{1, 2});
  b.constant(foreign->producer()->attr(0).as_constant());
  b.ret({});
  EXPECT_EQ(codes(g), "ir.constant.owner");
  EXPECT_EQ(codes("graph @m() { %0 = core.constant() {value = dense<[1]> : i32[1]} : i32[2] "
                  "return %0 }"),
            "ir.constant.type");
  EXPECT_EQ(codes("graph @m() { %0 = core.constant() {value = dense<[1]> : i8[1]} : "
                  "i8[1] quant(0.5) return %0 }"),
            "");
}

TEST_F(VerifierTest, TerminatorsAndRegions) {
  EXPECT_EQ(codes("graph @m(%x: f32[2]) { %0 = aten.relu.default(%x) : f32[2] }"), "ir.terminator");
  EXPECT_EQ(codes("graph @m(%x: f32[2]) -> () { return return }"), "ir.terminator");
  EXPECT_EQ(codes("graph @m(%x: f32[2]) {}"), "ir.terminator");
  EXPECT_EQ(codes("graph @m(%x: f32[2]) { core.unregistered() {target = \"t\", arg_names = [], "
                  "args = [operand(0), [region(1)]]} do () {} : () return %x }"),
            "ir.attr.operand ir.attr.region ir.terminator");
  EXPECT_EQ(codes("graph @m(%x: f32[2]) { %0 = aten.relu.default(%x) do () { return } : f32[2] "
                  "return %0 }"),
            "ir.region.unexpected");
}

TEST_F(VerifierTest, Interface) {
  EXPECT_EQ(codes("graph @m(%x: f32[2]) -> (\"y\" = 1) { return %x }"), "ir.interface.output");
  EXPECT_EQ(codes("graph @m(%x: f32[2]) -> (input(\"z\")) { return %x }"), "ir.interface.target");
  const auto g = read("graph @m(%x: f32[2]) { %0 = aten.relu.default(%x) : f32[2] return %0 }");
  g->inputs()[0].value = g->body().front()->result();
  EXPECT_EQ(codes(*g), "ir.interface.input");
  g->inputs()[0].value = nullptr;
  EXPECT_EQ(codes(*g), "ir.interface.input");
}

TEST_F(VerifierTest, StopsAtTheLimitOfFindings) {
  Graph g(ctx);
  for (int i = 0; i < 1000; ++i)
    g.append(g.body(), g.create(core_op::ret, {}, {}, {}));
  Diagnostics d;
  verify(g, d, {.max_findings = 5});
  EXPECT_EQ(d.error_count(), 5u);
}

TEST_F(VerifierTest, DeclaredAgainstInferred) {
  const VerifyOptions check{.check_inference = true};
  EXPECT_EQ(codes("graph @m() { %0 = core.size() {value = 3} : float return %0 }", check),
            "ir.infer.mismatch");
  EXPECT_EQ(codes("graph @m() { %0 = core.size() {value = 3} return %0 }", check), "");
}

} // namespace
} // namespace chute::ir

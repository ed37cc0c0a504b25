#include "eval/evaluator.h"

#include "aten/ops.h"
#include "eval/kernel.h"
#include "ir/builder.h"
#include "ir/sym_table.h"
#include "ir/text.h"

#include <gtest/gtest.h>

namespace chute::eval {
namespace {

using ir::Attr;
using ir::SymInt;

class EvaluatorTest : public testing::Test {
protected:
  void SetUp() override { aten::register_dialect(); }
  ir::Value *input(std::initializer_list<SymInt> shape, ElementType element = ElementType::F32) {
    return graph.add_argument(graph.body(), context.tensor_type(element, shape));
  }
  ir::Value *emit(ir::OpCode code, std::vector<ir::Value *> operands,
                  std::vector<ir::NamedAttr> attrs, ir::Type type) {
    return builder.create_typed(code, operands, attrs, std::span(&type, 1))->result();
  }
  void ret(std::vector<ir::Value *> values) { builder.ret(values); }

  ir::Context context;
  ir::Graph graph{context};
  ir::Builder builder{graph, graph.body()};
};

TEST_F(EvaluatorTest, AddBroadcasts) {
  ir::Value *a = input({2, 3});
  ir::Value *b = input({3});
  ret({emit(aten::op::add_Tensor, {a, b}, {{"alpha", Attr::of_int(2)}}, a->type())});
  const std::vector<Tensor> in{Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}),
                               Tensor::f32({3}, {10, 20, 30})};
  const auto out = evaluate(graph, in);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_TRUE(same_bits((*out)[0], Tensor::f32({2, 3}, {21, 42, 63, 24, 45, 66})));
}

TEST_F(EvaluatorTest, BindsSymbolsAndChecksThem) {
  const SymInt s = context.sym().symbol("s0");
  context.sym().set_range(s, {2, 8});
  ir::Value *a = input({context.sym().mul(s, 2)});
  ir::Value *b = input({s});
  const SymInt total = context.sym().mul(s, 3);
  ret({emit(aten::op::cat, {a, b}, {{"dim", Attr::of_int(0)}},
            context.tensor_type(ElementType::F32, {total}))});
  const Tensor four = Tensor::f32({4}, {1, 2, 3, 4});
  const Tensor two = Tensor::f32({2}, {5, 6});
  auto out = evaluate(graph, std::vector<Tensor>{four, two});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_TRUE(same_bits((*out)[0], Tensor::f32({6}, {1, 2, 3, 4, 5, 6})));
  out = evaluate(graph, std::vector<Tensor>{four, four});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, "eval.shape");
  out = evaluate(graph, std::vector<Tensor>{two, Tensor::f32({1}, {1})});
  ASSERT_FALSE(out) << "outside the range";
  EXPECT_EQ(out.error().code, "eval.shape");
}

TEST_F(EvaluatorTest, WrongInputsAreUsageErrors) {
  ir::Value *a = input({2});
  ret({a});
  EXPECT_EQ(evaluate(graph, {}).error().code, "eval.inputs");
  const std::vector<Tensor> rank{Tensor::f32({2, 1}, {1, 2})};
  EXPECT_EQ(evaluate(graph, rank).error().code, "eval.inputs");
  const std::vector<Tensor> element{Tensor::i64s({2}, {1, 2})};
  EXPECT_EQ(evaluate(graph, element).error().kind, ErrorKind::Usage);
}

TEST_F(EvaluatorTest, MissingKernelNamesTheOperator) {
  ir::Value *a = input({2, 2});
  ret({emit(aten::op::cholesky, {a}, {{"upper", Attr::of_bool(false)}}, a->type())});
  const std::vector<Tensor> in{Tensor::f32({2, 2}, {1, 0, 0, 1})};
  const auto out = evaluate(graph, in);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, "eval.no_kernel");
  EXPECT_NE(out.error().object.find("aten.cholesky.default"), std::string::npos);
}

TEST_F(EvaluatorTest, IntegerDivisionByZeroIsAnError) {
  ir::Value *a = input({2}, ElementType::I64);
  ret({emit(aten::op::div_Tensor_mode, {a, a}, {{"rounding_mode", context.string_attr("floor")}},
            a->type())});
  EXPECT_TRUE(evaluate(graph, std::vector<Tensor>{Tensor::i64s({2}, {4, -3})}));
  EXPECT_EQ(evaluate(graph, std::vector<Tensor>{Tensor::i64s({2}, {4, 0})}).error().code,
            "eval.kernel");
}

TEST_F(EvaluatorTest, DeclaredTypeIsChecked) {
  ir::Value *a = input({2, 3});
  ret({emit(aten::op::t, {a}, {}, a->type())});
  const std::vector<Tensor> in{Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(evaluate(graph, in).error().code, "eval.result_type");
}

TEST_F(EvaluatorTest, StateCanBeGivenAndIsReturned) {
  const ir::Type type = context.tensor_type(ElementType::F32, {2});
  const Tensor zero = Tensor::zeros(ElementType::F32, {2});
  const ir::Constant *c = graph.add_copy(type, zero.bytes());
  const std::vector<ir::NamedAttr> attrs{{"name", context.string_attr("count")},
                                         {"value", Attr::of_constant(c)}};
  ir::Value *state = emit(ir::core_op::state, {}, attrs, type);
  ir::Value *a = input({2});
  ret({emit(aten::op::add_Tensor, {state, a}, {{"alpha", Attr::of_int(1)}}, type)});
  graph.outputs().push_back({"count", ir::OutputKind::BufferMutation, 0, "count", {}});
  const std::vector<Tensor> in{Tensor::f32({2}, {1, 2})};
  auto out = evaluate(graph, in);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_TRUE(same_bits((*out)[0], in[0]));
  std::map<std::string, Tensor, std::less<>> content{{"count", in[0]}};
  EvalOptions options;
  options.state = &content;
  out = evaluate(graph, in, options);
  ASSERT_TRUE(out);
  EXPECT_TRUE(same_bits((*out)[0], Tensor::f32({2}, {2, 4})));
}

TEST_F(EvaluatorTest, LongChainNeedsNoStackAndFreesAsItGoes) {
  ir::Value *v = input({1});
  for (int i = 0; i < 200'000; ++i)
    v = emit(aten::op::neg, {v}, {}, v->type());
  ret({v});
  size_t seen = 0;
  EvalOptions options;
  options.threads = 1;
  options.on_value = [&](const ir::Value &, const Tensor &) { ++seen; };
  const auto out = evaluate(graph, std::vector<Tensor>{Tensor::f32({1}, {3})}, options);
  ASSERT_TRUE(out);
  EXPECT_EQ((*out)[0].at(0), 3);
  EXPECT_EQ(seen, 200'001u);
}

// --- control flow, from text
// ----------------------------------------------------------------------
Result<std::vector<Tensor>> run_text(std::string_view text, const std::vector<Tensor> &inputs) {
  aten::register_dialect();
  ir::Context context;
  const auto graph = ir::parse(context, text);
  if (!graph)
    return tl::unexpected(graph.error());
  return evaluate(**graph, inputs);
}

TEST(Regions, Cond) {
  constexpr std::string_view kText = R"(graph @main(%p: bool[], %x: f32[2]) {
    %y = higher_order.cond(%p, %x) do (%a: f32[2]) {
      %n = aten.neg.default(%a) : f32[2]
      return %n
    } do (%b: f32[2]) {
      return %b
    } : f32[2]
    return %y
  })";
  const Tensor x = Tensor::f32({2}, {1, 2});
  auto out = run_text(kText, {Tensor::scalar_int(ElementType::Bool, 1), x});
  ASSERT_TRUE(out) << out.error().message << out.error().object;
  EXPECT_TRUE(same_bits((*out)[0], Tensor::f32({2}, {-1, -2})));
  out = run_text(kText, {Tensor::scalar_int(ElementType::Bool, 0), x});
  ASSERT_TRUE(out);
  EXPECT_TRUE(same_bits((*out)[0], x));
}

TEST(Regions, WhileLoopRunsInConstantStack) {
  const auto out = run_text(R"(graph @main(%i: i64[], %x: f32[2], %d: f32[2]) {
    %j, %y = higher_order.while_loop(%i, %x, %d) {segments = [2, 1]} do (%a: i64[], %b: f32[2], %c: f32[2]) {
      %t = aten.lt.Scalar(%a) {other = 50000} : bool[]
      return %t
    } do (%a: i64[], %b: f32[2], %c: f32[2]) {
      %n = aten.add.Scalar(%a) {other = 1} : i64[]
      %s = aten.add.Tensor(%b, %c) : f32[2]
      return %n, %s
    } : i64[], f32[2]
    return %j, %y
  })",
                            {Tensor::scalar_int(ElementType::I64, 0), Tensor::f32({2}, {0, 0}),
                             Tensor::f32({2}, {1, 2})});
  ASSERT_TRUE(out) << out.error().message << out.error().object;
  EXPECT_EQ((*out)[0].int_at(0), 50000);
  EXPECT_TRUE(same_bits((*out)[1], Tensor::f32({2}, {50000, 100000})));
}

TEST(Symbols, NumbersReadFromDataDefineSizes) {
  const auto out = run_text(R"(graph @main(%n: i64[], %x: f32[1]) {
    sym u0 in [0, inf]
    %u0 = aten.item.default(%n) : int
    %y = aten.expand.default(%x) {size = [u0]} : f32[u0]
    return %y
  })",
                            {Tensor::scalar_int(ElementType::I64, 3), Tensor::f32({1}, {7})});
  ASSERT_TRUE(out) << out.error().message << out.error().object;
  EXPECT_TRUE(same_bits((*out)[0], Tensor::f32({3}, {7, 7, 7})));
}

TEST(KernelTable, EveryAtenEntryNamesAnOperator) {
  aten::register_dialect();
  KernelTable &table = KernelTable::global();
  EXPECT_TRUE(table.find(aten::op::add_Tensor));
  EXPECT_TRUE(table.find(aten::op::convolution));
  EXPECT_FALSE(table.find(aten::op::cholesky));
}

} // namespace
} // namespace chute::eval

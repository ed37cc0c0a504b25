#include "circle/ops.h"
#include "eval/quantized.h"
#include "ir/op_def.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "ptq/linear_algebra.h"
#include "ptq/ptq.h"
#include "ptq/report.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace chute::ptq {
namespace {

using eval::Tensor;

std::unique_ptr<ir::Graph> graph_of(ir::Context &ctx, const std::string &text) {
  circle::register_dialect();
  auto graph = ir::parse(ctx, text);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message + " " + graph.error().object);
  return graph ? std::move(*graph) : nullptr;
}

ForEachSample once(Sample sample) {
  return [sample = std::move(sample)](const ir::Graph &, const auto &use) { return use(sample); };
}

Result<std::unique_ptr<ir::Graph>> run(ir::Context &ctx, const std::string &text, Sample sample,
                                       const Options &options, Report &report) {
  return quantize([&]() -> Result<std::unique_ptr<ir::Graph>> { return graph_of(ctx, text); },
                  once(std::move(sample)), options, report);
}

Options options_of(const char *scheme) {
  Options o;
  o.plan.scheme = find_scheme(scheme);
  o.threads = 1;
  o.weights = WeightMode::Nearest;
  return o;
}

u64 count(const ir::Graph &graph, ir::OpCode code) {
  u64 n = 0;
  for (const ir::Op &o : graph.body())
    n += o.opcode() == code && (o.num_results() == 0 || o.result()->has_uses());
  return n;
}

const ir::Op *first(const ir::Graph &graph, ir::OpCode code) {
  for (const ir::Op &o : graph.body())
    if (o.opcode() == code)
      return &o;
  return nullptr;
}

void expect_valid(const ir::Graph &graph) {
  Diagnostics findings;
  ir::verify(graph, findings);
  for (const Diagnostic &d : findings.all())
    ADD_FAILURE() << to_text(d);
}

TEST(Parameters, ZeroIsExactAndTheRangeIsCovered) {
  ir::Context ctx;
  const ir::Quantization *q = parameters(ctx, {-1, 3}, ir::ElementType::I8, false);
  EXPECT_FLOAT_EQ(q->scales[0], 4.0f / 255);
  EXPECT_EQ(q->zero_points[0], -64);
  q = parameters(ctx, {2, 3}, ir::ElementType::U8, false); // widened to zero
  EXPECT_FLOAT_EQ(q->scales[0], 3.0f / 255);
  EXPECT_EQ(q->zero_points[0], 0);
  q = parameters(ctx, {-2, 1}, ir::ElementType::I16, true);
  EXPECT_FLOAT_EQ(q->scales[0], 2.0f / 32767);
  EXPECT_EQ(q->zero_points[0], 0);
  q = parameters(ctx, {0, 0}, ir::ElementType::U4, false);
  EXPECT_EQ(q->scales[0], 1.0f);
  q = parameters(ctx, {-1e-45f, 0}, ir::ElementType::I8, false);
  EXPECT_TRUE(q->scales[0] > 0 && std::isfinite(1 / q->scales[0]));
}

std::vector<float> ramp(float lo, float hi, size_t n) {
  std::vector<float> v;
  for (size_t i = 0; i < n; ++i)
    v.push_back(lo + (hi - lo) * static_cast<float>(i) / static_cast<float>(n - 1));
  return v;
}

TEST(Observer, EveryKindSeesTheSameExtremes) {
  for (const ObserverKind kind : {ObserverKind::MinMax, ObserverKind::MovingAverage,
                                  ObserverKind::Percentile, ObserverKind::Mse}) {
    Observer o(ObserverOptions{kind, 100});
    EXPECT_TRUE(o.range(ir::ElementType::I8, false).empty());
    o.observe(ramp(-1, 3, 1000));
    const Range r = o.range(ir::ElementType::I8, false);
    EXPECT_NEAR(r.lo, -1, 0.1) << static_cast<int>(kind);
    EXPECT_NEAR(r.hi, 3, 0.1) << static_cast<int>(kind);
    EXPECT_EQ(o.seen().hi, 3);
  }
}

TEST(Observer, PercentileAndMseLeaveOutliersOut) {
  std::vector<float> v = ramp(-1, 1, 20000);
  v.push_back(1000);
  Observer average(ObserverOptions{ObserverKind::MovingAverage});
  average.observe(ramp(-1, 1, 10));
  average.observe(ramp(-1, 11, 10));
  EXPECT_FLOAT_EQ(average.range(ir::ElementType::I8, false).hi, 2);
  Observer percentile(ObserverOptions{ObserverKind::Percentile, 99.9});
  percentile.observe(v);
  EXPECT_LT(percentile.range(ir::ElementType::I8, false).hi, 2);
  // Cutting into a long, thin tail costs less than coarser steps for the rest.
  std::vector<float> tail;
  for (int i = 0; i < 100000; ++i)
    tail.push_back(static_cast<float>(std::pow(i / 1e5, 40)) * 10);
  Observer mse(ObserverOptions{ObserverKind::Mse});
  mse.observe(tail);
  EXPECT_LT(mse.range(ir::ElementType::I4, false).hi, 9.5f);
}

TEST(Observer, TheHistogramWidensWithoutForgetting) {
  Observer o(ObserverOptions{ObserverKind::Percentile, 99});
  o.observe(ramp(0, 0.001f, 100));
  o.observe(ramp(0, 100, 9900));
  const Range r = o.range(ir::ElementType::I8, false);
  EXPECT_NEAR(r.hi, 99, 1);
  EXPECT_NEAR(r.lo, 0, 1);
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("layers.*.mlp", "layers.12.mlp"));
  EXPECT_TRUE(matches_glob("a*b*c", "axxbyybzc"));
  EXPECT_TRUE(matches_glob("conv?", "conv1"));
  EXPECT_FALSE(matches_glob("conv?", "conv"));
  EXPECT_FALSE(matches_glob("a*b", "abc"));
}

TEST(Samples, ByNameByPositionAndStacked) {
  ir::Context ctx;
  const auto graph = graph_of(ctx, "graph @g(%x: f32[2], %n: i32[1]) { return %x }");
  graph->inputs() = {{"x", ir::InputKind::User, graph->body().arg(0), {}},
                     {"n", ir::InputKind::User, graph->body().arg(1), {}}};
  using Arrays = std::vector<std::pair<std::string, Tensor>>;
  const Tensor x = Tensor::f32({2}, {1, 2});
  const Tensor n = Tensor::i64s({1}, {7});
  auto got = samples_of(*graph, Arrays{{"in1", n}, {"x", x}}, "a.npz");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1u);
  EXPECT_EQ((*got)[0][1].element(), ir::ElementType::I32);
  got = samples_of(*graph,
                   Arrays{{"x", Tensor::f32({3, 2}, {1, 2, 3, 4, 5, 6})},
                          {"n", Tensor::i64s({3, 1}, {7, 8, 9})}},
                   "a.npz");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 3u);
  EXPECT_EQ((*got)[2][0].at(1), 6);
  EXPECT_EQ((*got)[1][1].at(0), 8);
  EXPECT_EQ(samples_of(*graph, Arrays{{"x", x}}, "a.npz").error().code, "quantize.sample.missing");
  EXPECT_EQ(samples_of(*graph, Arrays{{"x", x}, {"n", x}}, "a.npz").error().code,
            "quantize.sample.type");
  EXPECT_EQ(
      samples_of(*graph, Arrays{{"x", Tensor::f32({3, 2}, {1, 2, 3, 4, 5, 6})}, {"n", n}}, "a.npz")
          .error()
          .code,
      "quantize.sample.shape");
}

const char *const kLinear = R"(graph @g(%x: f32[1,4]) -> ("y": f32[1,2]) {
  %w = core.constant dense<[[1.0, -2.0, 0.5, 0.25], [0.0, 0.0, 0.0, 0.0]]> : f32[2,4]
  %b = core.constant dense<[0.5, -0.25]> : f32[2]
  %l = circle.fully_connected(%x, %w, %b) {keep_num_dims = true} : f32[1,2]
  %y = circle.softmax(%l) {beta = 1.0} : f32[1,2]
  return %y
})";

TEST(Quantize, ContractionsGetWeightsPerChannelAndABiasInTheirProductsSteps) {
  ir::Context ctx;
  Report report;
  const auto graph =
      run(ctx, kLinear, {Tensor::f32({1, 4}, {1, -1, 0.5f, 2})}, options_of("int8"), report);
  ASSERT_TRUE(graph) << graph.error().message;
  expect_valid(**graph);
  const ir::Op &fc = *first(**graph, circle::op::FULLY_CONNECTED);
  const ir::Quantization &x = *fc.operand(0)->type().quant();
  const ir::Quantization &w = *fc.operand(1)->type().quant();
  const ir::Quantization &b = *fc.operand(2)->type().quant();
  EXPECT_EQ(fc.operand(1)->type().element(), ir::ElementType::I8);
  EXPECT_EQ(fc.operand(2)->type().element(), ir::ElementType::I32);
  ASSERT_EQ(w.scales.size(), 2u);
  EXPECT_FLOAT_EQ(w.scales[0], 2.0f / 127);
  EXPECT_FLOAT_EQ(w.scales[1], 2.0f / 127); // a channel of zeros takes the tensor's
  EXPECT_FLOAT_EQ(b.scales[0], x.scales[0] * w.scales[0]);
  const ir::Op &softmax = *first(**graph, circle::op::SOFTMAX);
  EXPECT_EQ(softmax.result()->type().quant()->scales[0], 1.0f / 256);
  EXPECT_EQ(softmax.result()->type().quant()->zero_points[0], -128);
  EXPECT_EQ(count(**graph, circle::op::QUANTIZE), 1u);
  EXPECT_EQ(count(**graph, circle::op::DEQUANTIZE), 1u);
  ASSERT_EQ(report.outputs.size(), 1u);
  EXPECT_GT(report.outputs[0].second, 30);
  EXPECT_EQ(report.layers.size(), 2u);
  const std::string json = report_json(report, options_of("int8"), {400, 100});
  EXPECT_NE(json.find("\"op\":\"circle.fully_connected\""), std::string::npos);
  EXPECT_NE(report_text(report, options_of("int8"), {400, 100}).find("0.250 of"),
            std::string::npos);
}

TEST(Quantize, SharedParametersAndRequantizationOfFixedOnes) {
  ir::Context ctx;
  Report report;
  // The concatenation and its operand share; the softmax keeps its own and is requantized.
  const auto graph = run(ctx, R"(graph @g(%x: f32[1,4]) {
    %e = circle.exp(%x) : f32[1,4]
    %s = circle.softmax(%x) {beta = 1.0} : f32[1,4]
    %c = circle.concatenation(%e, %s) {axis = 1} : f32[1,8]
    return %c
  })",
                         {Tensor::f32({1, 4}, {1, -1, 0.5f, 2})}, options_of("int8"), report);
  ASSERT_TRUE(graph) << graph.error().message;
  expect_valid(**graph);
  const ir::Op &cat = *first(**graph, circle::op::CONCATENATION);
  EXPECT_EQ(cat.operand(0)->type().quant(), cat.result()->type().quant());
  EXPECT_EQ(cat.operand(0)->producer()->opcode(), circle::op::EXP);
  EXPECT_EQ(cat.operand(1)->type().quant(), cat.result()->type().quant());
  EXPECT_EQ(cat.operand(1)->producer()->opcode(), circle::op::QUANTIZE);
}

TEST(Quantize, FloatOperatorsGetRealNumbers) {
  ir::Context ctx;
  Report report;
  Options options = options_of("w8a16");
  options.plan.keep_float = {"EXP"};
  options.io = IoType::Quantized;
  const auto graph = run(ctx, R"(graph @g(%x: f32[1,4]) {
    %a = circle.neg(%x) : f32[1,4]
    %e = circle.exp(%a) : f32[1,4]
    %f = circle.floor(%e) : f32[1,4]
    %c = circle.add(%e, %f) {pot_scale_int16 = false} : f32[1,4]
    return %c
  })",
                         {Tensor::f32({1, 4}, {1, -1, 0.5f, 2})}, options, report);
  ASSERT_TRUE(graph) << graph.error().message;
  expect_valid(**graph);
  EXPECT_EQ(first(**graph, circle::op::EXP)->operand(0)->type().element(), ir::ElementType::F32);
  EXPECT_EQ((*graph)->body().arg(0)->type().element(), ir::ElementType::I16);
  EXPECT_EQ((*graph)->return_op()->operand(0)->type().element(), ir::ElementType::I16);
  ASSERT_EQ(report.kept.size(), 2u);
  EXPECT_EQ(report.kept[0].reason, "--keep-float EXP");
  EXPECT_NE(report.kept[1].reason.find("step"), std::string::npos);
}

TEST(Quantize, TablesKeepTheirOwnTypeUnderWideActivations) {
  ir::Context ctx;
  const char *text = R"(graph @g(%i: i32[2]) {
    %t = core.constant dense<[[1.0, -2.0], [0.5, 8.0], [4.0, 4.0]]> : f32[3,2]
    %r = circle.gather(%t, %i) {axis = 0} : f32[2,2]
    %y = circle.neg(%r) : f32[2,2]
    return %y
  })";
  const i32 rows[2] = {0, 2};
  const Sample sample{Tensor::of(ir::ElementType::I32, {2}, std::span<const i32>(rows))};
  Report report;
  auto graph = run(ctx, text, sample, options_of("w4a16"), report);
  ASSERT_TRUE(graph) << graph.error().message;
  expect_valid(**graph);
  const ir::Op *gather = first(**graph, circle::op::GATHER);
  EXPECT_EQ(gather->operand(0)->type().element(), ir::ElementType::U8);
  EXPECT_EQ(first(**graph, circle::op::NEG)->operand(0)->type().element(), ir::ElementType::I16);
  // Rows that no sample took must fit too.
  report = {};
  graph = run(ctx, text, sample, options_of("int16x8"), report);
  ASSERT_TRUE(graph) << graph.error().message;
  gather = first(**graph, circle::op::GATHER);
  EXPECT_FLOAT_EQ(gather->result()->type().quant()->scales[0], 8.0f / 32767);
}

TEST(Quantize, MasksDoNotStretchRanges) {
  ir::Context ctx;
  Report report;
  const auto graph = run(ctx, R"(graph @g(%x: f32[2,2]) {
    %m = core.constant dense<[[0.0, -inf], [0.0, 0.0]]> : f32[2,2]
    %n = circle.neg(%x) : f32[2,2]
    %a = circle.add(%n, %m) {pot_scale_int16 = false} : f32[2,2]
    %y = circle.softmax(%a) {beta = 1.0} : f32[2,2]
    return %y
  })",
                         {Tensor::f32({2, 2}, {1, -1, 0.5f, 2})}, options_of("int8"), report);
  ASSERT_TRUE(graph) << graph.error().message;
  const ir::Quantization &q = *first(**graph, circle::op::ADD)->result()->type().quant();
  EXPECT_LT(q.scales[0], 12.0f / 255);
  EXPECT_GT(report.outputs[0].second, 30);
}

TEST(LinearAlgebra, FactorsSolveAndInvert) {
  Square a(3);
  a.v = {4, 2, 1, 2, 5, 3, 1, 3, 6};
  const Square original = a;
  ASSERT_TRUE(cholesky(a));
  std::vector<double> b{1, 0, 2, 1, 3, -1}; // two right sides
  const std::vector<double> right = b;
  solve(a, b, 2);
  for (i64 i = 0; i < 3; ++i)
    for (i64 c = 0; c < 2; ++c) {
      double sum = 0;
      for (i64 k = 0; k < 3; ++k)
        sum += original.at(i, k) * b[static_cast<size_t>(k * 2 + c)];
      EXPECT_NEAR(sum, right[static_cast<size_t>(i * 2 + c)], 1e-12);
    }
  Square u;
  ASSERT_TRUE(inverse_factor(a, u));
  for (i64 i = 0; i < 3; ++i)
    for (i64 j = 0; j < 3; ++j) { // U^T U A is the identity
      double sum = 0;
      for (i64 k = 0; k < 3; ++k)
        for (i64 m = 0; m < 3; ++m)
          sum += u.at(m, i) * u.at(m, k) * original.at(k, j);
      EXPECT_NEAR(sum, i == j, 1e-12);
    }
  Square singular(2);
  singular.v = {1, 1, 1, 1};
  EXPECT_FALSE(cholesky(singular));
}

TEST(Quantize, GptqSpreadsTheErrorOfWeightsOverCorrelatedInputs) {
  // Inputs that nearly repeat each other: a weight's rounding can be undone by its neighbour.
  std::string row;
  for (int i = 0; i < 8; ++i)
    row +=
        (i ? ", " : "") + std::to_string(0.37 + 0.11 * i) + ", " + std::to_string(0.29 - 0.07 * i);
  const std::string text = "graph @g(%x: f32[16,16]) {\n  %w = core.constant dense<[[" + row +
                           "]]> : f32[1,16]\n  %y = circle.fully_connected(%x, %w, none) "
                           "{keep_num_dims = true} : f32[16,1]\n  return %y\n}";
  Tensor x = Tensor::allocate(ir::ElementType::F32, {16, 16});
  for (i64 i = 0; i < 256; ++i) {
    const i64 r = i / 16;
    const i64 c = i % 16 / 2;
    x.mutable_as<float>()[i] = static_cast<float>(std::sin(static_cast<double>(r * 3 + c * 5)) +
                                                  0.01 * std::cos(static_cast<double>(i)));
  }
  double sqnr[2];
  for (const bool gptq : {false, true}) {
    ir::Context ctx;
    Options options = options_of("w4a16");
    options.weights = gptq ? WeightMode::Gptq : WeightMode::Nearest;
    Report report;
    const auto graph = run(ctx, text, {x}, options, report);
    ASSERT_TRUE(graph) << graph.error().message;
    expect_valid(**graph);
    EXPECT_EQ(report.adjusted, gptq);
    sqnr[gptq] = report.outputs[0].second;
  }
  EXPECT_GT(sqnr[1], sqnr[0] + 6);
}

TEST(Quantize, GptqMeetsThePatchesOfConvolutions) {
  // With dilation, stride and SAME padding; wrong patches would make the result worse.
  std::string weights;
  for (int i = 0; i < 2 * 3 * 3 * 2; ++i)
    weights += (i ? ", " : "") + std::to_string(std::sin(i * 1.7));
  const std::string text =
      "graph @g(%x: f32[1,9,8,2]) {\n  %f = core.constant dense<[" + weights +
      "]> : f32[36]\n  %s = core.constant dense<[2, 3, 3, 2]> : i32[4]\n"
      "  %w = circle.reshape(%f, %s) {new_shape = [2, 3, 3, 2]} : f32[2,3,3,2]\n  %y = "
      "circle.conv_2d(%x, %w, none) {padding = \"SAME\", stride_h = 2, stride_w = 1, "
      "dilation_h_factor = 1, dilation_w_factor = 2} : f32[1,5,8,2]\n  return %y\n}";
  Tensor x = Tensor::allocate(ir::ElementType::F32, {1, 9, 8, 2});
  for (i64 i = 0; i < x.num_elements(); ++i)
    x.mutable_as<float>()[i] = static_cast<float>(1 + 0.3 * std::sin(static_cast<double>(i * i)));
  double sqnr[2];
  for (const bool gptq : {false, true}) {
    ir::Context ctx;
    Options options = options_of("w4a16");
    options.weights = gptq ? WeightMode::Gptq : WeightMode::Nearest;
    Report report;
    const auto graph = quantize(
        [&]() -> Result<std::unique_ptr<ir::Graph>> {
          auto g = graph_of(ctx, text);
          // The weights as a constant of their own shape.
          ir::Op *reshape = g->body().front();
          while (reshape->opcode() != circle::op::RESHAPE)
            reshape = reshape->next();
          const ir::Constant &flat = *reshape->operand(0)->producer()->attr("value").as_constant();
          ir::Op *constant = reshape->operand(0)->producer();
          const ir::Type type = reshape->result()->type();
          ir::Op *made = g->create(ir::core_op::constant, {},
                                   std::vector<ir::Attr>{ir::Attr::of_constant(
                                       g->add_constant(type, flat.data, flat.owner))},
                                   std::span(&type, 1));
          g->insert_before(g->body(), constant, made);
          g->replace_all_uses(reshape->result(), made->result());
          g->erase(reshape);
          return g;
        },
        once({x}), options, report);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(report.adjusted, gptq);
    sqnr[gptq] = report.outputs[0].second;
  }
  EXPECT_GT(sqnr[1], sqnr[0] + 2);
}

TEST(Quantize, ErrorsNameWhatIsWrong) {
  ir::Context ctx;
  Report report;
  const auto code = [&](const char *text, Sample sample) {
    report = {};
    const auto graph = run(ctx, text, std::move(sample), options_of("int8"), report);
    return graph ? std::string() : graph.error().code;
  };
  const char *log = "graph @g(%x: f32[1]) { %y = circle.log(%x) : f32[1]\n %z = circle.neg(%y) : "
                    "f32[1]\n return %z }";
  EXPECT_EQ(code(log, {Tensor::f32({1}, {0})}), "quantize.not_finite");
  EXPECT_EQ(code(log, {Tensor::f32({1}, {NAN})}), "quantize.not_finite");
  EXPECT_EQ(code(log, {Tensor::f32({1}, {2})}), "");
  EXPECT_EQ(code("graph @g(%x: f32[1]) { %y = circle.floor(%x) : f32[1]\n return %y }",
                 {Tensor::f32({1}, {2})}),
            "quantize.nothing");
  EXPECT_EQ(code("graph @g(%x: i8[1] quant(0.5)) { return %x }", {Tensor::f32({1}, {2})}),
            "quantize.already");
  const auto none = quantize(
      [&]() -> Result<std::unique_ptr<ir::Graph>> { return graph_of(ctx, log); },
      [](const ir::Graph &, const auto &) { return Status(); }, options_of("int8"), report);
  EXPECT_EQ(none.error().code, "quantize.no_samples");
}

} // namespace
} // namespace chute::ptq

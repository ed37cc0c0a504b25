// Kernels against plain loops on random problems, and bit-stability on problems large enough to be
// cut.

#include "aten/ops.h"
#include "eval/evaluator.h"
#include "ir/builder.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace chute::eval {
namespace {

using ir::Attr;

class PropertiesTest : public testing::Test {
protected:
  void SetUp() override { aten::register_dialect(); }

  i64 pick(i64 low, i64 high) { return std::uniform_int_distribution<i64>(low, high)(random); }
  Tensor values(Shape shape) {
    Tensor t = Tensor::allocate(ElementType::F32, std::move(shape));
    std::uniform_real_distribution<float> d(-1, 1);
    for (i64 i = 0; i < t.num_elements(); ++i)
      t.mutable_as<float>()[i] = d(random);
    return t;
  }
  /// One operator on `in`; the first result.
  Tensor run(ir::OpCode code, const std::vector<Tensor> &in,
             const std::vector<ir::NamedAttr> &attrs, const std::vector<Shape> &results,
             int threads = 2) {
    ir::Graph graph(context);
    ir::Builder builder(graph, graph.body());
    const auto type_of = [&](ElementType e, const Shape &s) {
      return context.tensor_type(e, std::vector<ir::SymInt>(s.begin(), s.end()));
    };
    std::vector<ir::Value *> operands;
    for (const Tensor &t : in)
      operands.push_back(graph.add_argument(graph.body(), type_of(t.element(), t.shape())));
    while (operands.size() < ir::Registry::global().def(code).operands.size())
      operands.push_back(nullptr);
    std::vector<ir::Type> types;
    for (const Shape &s : results)
      types.push_back(type_of(types.empty() ? ElementType::F32 : ElementType::I64, s));
    ir::Op *op = builder.create_typed(code, operands, attrs, types);
    std::vector<ir::Value *> returned{op->result()};
    builder.ret(returned);
    EvalOptions options;
    options.threads = threads;
    const auto out = evaluate(graph, in, options);
    EXPECT_TRUE(out) << out.error().message;
    return out ? (*out)[0] : Tensor();
  }
  Attr ints(std::initializer_list<i64> v) {
    return context.ints_attr(std::vector<ir::SymInt>(v.begin(), v.end()));
  }
  static void expect_close(const Tensor &a, const Tensor &b, double tolerance) {
    ASSERT_EQ(a.shape(), b.shape());
    for (i64 i = 0; i < a.num_elements(); ++i)
      ASSERT_NEAR(a.at(i), b.at(i), tolerance) << "element " << i;
  }

  ir::Context context;
  std::mt19937 random{11};
};

TEST_F(PropertiesTest, ConvolutionIsItsDefinition) {
  for (int round = 0; round < 60; ++round) {
    const i64 groups = pick(1, 3);
    const i64 ci = pick(1, 3);
    const i64 co = pick(1, 3);
    const i64 n = pick(1, 2);
    const i64 h = pick(3, 9);
    const i64 w = pick(3, 9);
    const i64 kh = pick(1, 3);
    const i64 kw = pick(1, 3);
    const i64 s[2] = {pick(1, 3), pick(1, 3)};
    const i64 p[2] = {pick(0, 2), pick(0, 2)};
    const i64 d[2] = {pick(1, 2), pick(1, 2)};
    const i64 oh = (h + 2 * p[0] - d[0] * (kh - 1) - 1) / s[0] + 1;
    const i64 ow = (w + 2 * p[1] - d[1] * (kw - 1) - 1) / s[1] + 1;
    if (h + 2 * p[0] < d[0] * (kh - 1) + 1 || w + 2 * p[1] < d[1] * (kw - 1) + 1)
      continue;
    const Tensor x = values({n, ci * groups, h, w});
    const Tensor weight = values({co * groups, ci, kh, kw});
    const Tensor bias = values({co * groups});
    Tensor want = Tensor::zeros(ElementType::F32, {n, co * groups, oh, ow});
    i64 at = 0;
    for (i64 b = 0; b < n; ++b)
      for (i64 c = 0; c < co * groups; ++c)
        for (i64 y = 0; y < oh; ++y)
          for (i64 z = 0; z < ow; ++z) {
            double sum = bias.at(c);
            for (i64 k = 0; k < ci; ++k)
              for (i64 i = 0; i < kh; ++i)
                for (i64 j = 0; j < kw; ++j) {
                  const i64 r = y * s[0] - p[0] + i * d[0];
                  const i64 q = z * s[1] - p[1] + j * d[1];
                  if (r < 0 || r >= h || q < 0 || q >= w)
                    continue;
                  const i64 channel = c / co * ci + k;
                  sum += x.at(((b * ci * groups + channel) * h + r) * w + q) *
                         weight.at(((c * ci + k) * kh + i) * kw + j);
                }
            want.mutable_as<float>()[at++] = static_cast<float>(sum);
          }
    const std::vector<ir::NamedAttr> attrs{
        {"stride", ints({s[0], s[1]})},   {"padding", ints({p[0], p[1]})},
        {"dilation", ints({d[0], d[1]})}, {"transposed", Attr::of_bool(false)},
        {"output_padding", ints({0, 0})}, {"groups", Attr::of_int(groups)}};
    expect_close(run(aten::op::convolution, {x, weight, bias}, attrs, {want.shape()}), want, 1e-5);
  }
}

/// The transposed convolution is the adjoint: <conv(x), y> = <x, conv_transposed(y)>.
TEST_F(PropertiesTest, TransposedConvolutionIsTheAdjoint) {
  for (int round = 0; round < 40; ++round) {
    const i64 stride = pick(1, 3);
    const i64 pad = pick(0, 1);
    const i64 dilation = pick(1, 2);
    const i64 kernel = pick(1, 3);
    const i64 out = pick(2, 5);
    const i64 extra = pick(0, stride - 1);
    const i64 in = (out - 1) * stride + dilation * (kernel - 1) + 1 - 2 * pad + extra;
    if (in < 1)
      continue;
    const Tensor x = values({1, 3, in});
    const Tensor weight = values({2, 3, kernel});
    const Tensor y = values({1, 2, out});
    const auto attrs = [&](bool transposed) {
      return std::vector<ir::NamedAttr>{{"stride", ints({stride})},
                                        {"padding", ints({pad})},
                                        {"dilation", ints({dilation})},
                                        {"transposed", Attr::of_bool(transposed)},
                                        {"output_padding", ints({transposed ? extra : 0})},
                                        {"groups", Attr::of_int(1)}};
    };
    const Tensor forward = run(aten::op::convolution, {x, weight}, attrs(false), {y.shape()});
    const Tensor back = run(aten::op::convolution, {y, weight}, attrs(true), {x.shape()});
    double left = 0;
    double right = 0;
    for (i64 i = 0; i < y.num_elements(); ++i)
      left += forward.at(i) * y.at(i);
    for (i64 i = 0; i < x.num_elements(); ++i)
      right += back.at(i) * x.at(i);
    EXPECT_NEAR(left, right, 1e-4);
  }
}

TEST_F(PropertiesTest, MatmulIsItsDefinition) {
  for (int round = 0; round < 40; ++round) {
    const i64 b = pick(1, 3);
    const i64 m = pick(1, 150);
    const i64 k = pick(1, 60);
    const i64 n = pick(1, 300);
    const bool shared = pick(0, 1);
    const Tensor x = values({b, m, k});
    const Tensor y = values(shared ? Shape{k, n} : Shape{b, k, n});
    Tensor want = Tensor::zeros(ElementType::F32, {b, m, n});
    for (i64 i = 0; i < b; ++i)
      for (i64 r = 0; r < m; ++r)
        for (i64 c = 0; c < n; ++c) {
          double sum = 0;
          for (i64 l = 0; l < k; ++l)
            sum += static_cast<double>(x.as<float>()[(i * m + r) * k + l]) *
                   static_cast<double>(y.as<float>()[((shared ? 0 : i) * k + l) * n + c]);
          want.mutable_as<float>()[(i * m + r) * n + c] = static_cast<float>(sum);
        }
    expect_close(run(aten::op::matmul, {x, y}, {}, {want.shape()}), want, 2e-5);
  }
}

TEST_F(PropertiesTest, PoolingIsItsDefinition) {
  for (int round = 0; round < 60; ++round) {
    const i64 h = pick(4, 9);
    const i64 w = pick(4, 9);
    const i64 k = pick(1, 4);
    const i64 s = pick(1, 3);
    const i64 p = pick(0, k / 2);
    const i64 oh = (h + 2 * p - k) / s + 1;
    const i64 ow = (w + 2 * p - k) / s + 1;
    if (h + 2 * p < k || w + 2 * p < k)
      continue;
    const Tensor x = values({2, h, w});
    for (const bool average : {false, true}) {
      Tensor want = Tensor::zeros(ElementType::F32, {2, oh, ow});
      i64 at = 0;
      for (i64 c = 0; c < 2; ++c)
        for (i64 y = 0; y < oh; ++y)
          for (i64 z = 0; z < ow; ++z) {
            double sum = 0;
            double top = -1e30;
            for (i64 r = y * s - p; r < y * s - p + k; ++r)
              for (i64 q = z * s - p; q < z * s - p + k; ++q)
                if (r >= 0 && r < h && q >= 0 && q < w) {
                  const double v = x.at((c * h + r) * w + q);
                  sum += v;
                  top = std::max(top, v);
                }
            want.mutable_as<float>()[at++] =
                static_cast<float>(average ? sum / static_cast<double>(k * k) : top);
          }
      std::vector<ir::NamedAttr> attrs{{"kernel_size", ints({k, k})},
                                       {"stride", ints({s, s})},
                                       {"padding", ints({p, p})},
                                       {"ceil_mode", Attr::of_bool(false)}};
      if (average) {
        attrs.push_back({"count_include_pad", Attr::of_bool(true)});
        attrs.push_back({"divisor_override", Attr::none()});
      } else {
        attrs.push_back({"dilation", ints({1, 1})});
      }
      expect_close(
          run(average ? aten::op::avg_pool2d : aten::op::max_pool2d, {x}, attrs, {want.shape()}),
          want, 1e-6);
    }
  }
}

TEST_F(PropertiesTest, LargeProblemsHaveTheSameBitsForAnyNumberOfThreads) {
  const auto stable = [&](ir::OpCode code, const std::vector<Tensor> &in,
                          const std::vector<ir::NamedAttr> &attrs, const Shape &shape) {
    const Tensor one = run(code, in, attrs, {shape}, 1);
    for (const int threads : {2, 5})
      EXPECT_TRUE(same_bits(one, run(code, in, attrs, {shape}, threads)))
          << ir::Registry::global().def(code).name << " with " << threads;
  };
  const std::vector<ir::NamedAttr> conv{
      {"stride", ints({1, 1})},         {"padding", ints({1, 1})},
      {"dilation", ints({1, 1})},       {"transposed", Attr::of_bool(false)},
      {"output_padding", ints({0, 0})}, {"groups", Attr::of_int(2)}};
  stable(aten::op::convolution, {values({2, 16, 40, 40}), values({24, 8, 3, 3}), values({24})},
         conv, {2, 24, 40, 40});
  stable(aten::op::matmul, {values({300, 200}), values({200, 600})}, {}, {300, 600});
  stable(aten::op::linear, {values({500, 128}), values({300, 128}), values({300})}, {}, {500, 300});
  stable(aten::op::sum_dim_IntList, {values({200'000})},
         {{"dim", ints({0})}, {"keepdim", Attr::of_bool(false)}, {"dtype", Attr::none()}}, {});
  stable(aten::op::u_softmax, {values({900, 77})},
         {{"dim", Attr::of_int(1)}, {"half_to_float", Attr::of_bool(false)}}, {900, 77});
  stable(aten::op::permute, {values({130, 70, 90})}, {{"dims", ints({2, 0, 1})}}, {90, 130, 70});
  stable(aten::op::exp, {values({100'000})}, {}, {100'000});
  stable(aten::op::add_Tensor, {values({300, 1, 200}), values({7, 1})},
         {{"alpha", Attr::of_int(1)}}, {300, 7, 200});
}

} // namespace
} // namespace chute::eval

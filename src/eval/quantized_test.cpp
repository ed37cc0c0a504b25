// Quantized tensors compute as the real numbers that they stand for.

#include "circle/ops.h"
#include "eval/evaluator.h"
#include "eval/quantized.h"
#include "ir/text.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>

namespace chute::eval {
namespace {

Tensor bytes(Shape shape, std::initializer_list<i8> v) {
  return Tensor::of(ElementType::I8, std::move(shape), std::span(v.begin(), v.size()));
}

std::vector<double> values(const Tensor &t) {
  std::vector<double> v;
  for (i64 i = 0; i < t.num_elements(); ++i)
    v.push_back(t.at(i));
  return v;
}

/// Outputs of a text program; a failed evaluation gives its error code in `error`.
std::vector<Tensor> run(const std::string &text, std::vector<Tensor> inputs,
                        std::string *error = nullptr) {
  circle::register_dialect();
  ir::Context context;
  const auto graph = ir::parse(context, text);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message + graph.error().object);
  if (!graph)
    return {};
  auto out = evaluate(**graph, inputs);
  if (error)
    *error = out ? "" : out.error().code;
  else
    EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *out : std::vector<Tensor>{};
}

TEST(Quantized, RoundsTiesAwayFromZeroAndClamps) {
  const auto out = run(R"(graph @q(%x: f32[8]) {
    %y = circle.quantize(%x) : i8[8] quant(0.5:3)
    %z = circle.dequantize(%y) : f32[8]
    return %y, %z
  })",
                       {Tensor::f32({8}, {0.25f, -0.25f, 0.75f, -0.75f, 0.2f, 1000, -1000, NAN})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].element(), ElementType::I8);
  EXPECT_EQ(values(out[0]), (std::vector<double>{4, 2, 5, 1, 3, 127, -128, 3}));
  EXPECT_EQ(values(out[1]), (std::vector<double>{0.5, -0.5, 1, -1, 0, 62, -65.5, 0}));
}

TEST(Quantized, ArithmeticTakesEachTensorsOwnParameters) {
  // 2 * (5 - 1) + 0.5 * 6 = 11 = 4 * 2.75: stored round(2.75) - 2.
  const auto out = run(R"(graph @q(%x: i8[1] quant(2:1), %y: i8[1] quant(0.5:0)) {
    %s = circle.add(%x, %y) {fused_activation_function = "NONE"} : i8[1] quant(4:-2)
    return %s
  })",
                       {bytes({1}, {5}), bytes({1}, {6})});
  EXPECT_EQ(values(out.at(0)), std::vector<double>{1});
}

TEST(Quantized, FullyConnectedWithWeightsPerChannelAndBias) {
  const auto out = run(
      R"(graph @q(%x: i8[1,2] quant(0.5:0), %w: i8[2,2] quant(axis=0, [1, 0.25]), %b: i32[2] quant(axis=0, [0.5, 0.125])) {
    %y = circle.fully_connected(%x, %w, %b) {keep_num_dims = true, fused_activation_function = "RELU"} : i16[1,2] quant(0.0625:0)
    return %y
  })",
      {bytes({1, 2}, {2, -4}), bytes({2, 2}, {1, 1, 8, 4}),
       Tensor::of(ElementType::I32, {2}, std::span<const i32>(std::array<i32, 2>{4, 64}))});
  // x = (1, -2): 1 - 2 + 2 = 1, and 2 - 2 + 8 = 8.
  EXPECT_EQ(out.at(0).element(), ElementType::I16);
  EXPECT_EQ(values(out.at(0)), (std::vector<double>{16, 128}));
}

TEST(Quantized, WeightsOnlyAndBlocks) {
  const auto out = run(R"(graph @q(%x: f32[1,4], %w: i8[1,4] quant(axis=1, block=2, [1, 0.5:1])) {
    %y = circle.fully_connected(%x, %w, none) {keep_num_dims = true} : f32[1,1]
    return %y
  })",
                       {Tensor::f32({1, 4}, {1, 10, 100, 1000}), bytes({1, 4}, {1, 2, 3, 5})});
  EXPECT_EQ(values(out.at(0)), std::vector<double>{1 + 20 + 100 + 2000});
}

TEST(Quantized, MovementKeepsStoredNumbersWhereParametersAgree) {
  const auto out = run(R"(graph @q(%x: i8[2] quant(0.5:7), %y: i8[1] quant(1:0)) {
    %r = circle.reshape(%x, none) {new_shape = [2, 1]} : i8[2,1] quant(0.5:7)
    %p = core.constant dense<[[1, 1]]> : i32[1,2]
    %f = circle.pad(%x, %p) : i8[4] quant(0.5:7)
    %c = circle.concatenation(%x, %y) {axis = 0} : i8[3] quant(0.5:7)
    return %r, %f, %c
  })",
                       {bytes({2}, {1, 2}), bytes({1}, {2})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(values(out[0]), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(out[1]), (std::vector<double>{7, 1, 2, 7}));
  EXPECT_EQ(values(out[2]),
            (std::vector<double>{1, 2, 11})); // 2 of the real line, not the number 2
}

TEST(Quantized, RowsAreTheRowsOfTheWhole) {
  ir::Context ctx;
  const float scales[] = {1, 0.5f, 0.25f, 2};
  const i64 zeros[] = {0, 1, -2, 3};
  std::vector<i8> v(4 * 4);
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<i8>(i * 7);
  const Tensor t = Tensor::of(ElementType::I8, {4, 4}, std::span<const i8>(v));
  ir::Quantization q;
  q.scales = scales;
  q.zero_points = zeros;
  struct Case {
    ir::QuantKind kind;
    int axis;
    int block;
    size_t count;
  };
  const float many[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const i64 offsets[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const Case &c :
       {Case{ir::QuantKind::PerTensor, 0, 0, 1}, Case{ir::QuantKind::PerChannel, 0, 0, 4},
        Case{ir::QuantKind::PerChannel, 1, 0, 4}, Case{ir::QuantKind::Block, 0, 2, 8},
        Case{ir::QuantKind::Block, 1, 2, 8}}) {
    q.kind = c.kind;
    q.axis = c.axis;
    q.block_size = c.block;
    q.scales =
        c.count == 8 ? std::span<const float>(many) : std::span<const float>(scales).first(c.count);
    q.zero_points =
        c.count == 8 ? std::span<const i64>(offsets) : std::span<const i64>(zeros).first(c.count);
    const auto all = dequantize(t, q);
    const auto rows = dequantize_rows(t, q, 1, 2);
    ASSERT_TRUE(all && rows);
    for (i64 i = 0; i < 8; ++i)
      EXPECT_EQ(rows->at(i), all->at(4 + i)) << c.axis << " " << c.block;
  }
  EXPECT_FALSE(dequantize_rows(t, q, 3, 2));
}

TEST(Quantized, LargeWeightsAreDequantizedInTiles) {
  // 2^22 + 2^11 weights, each the parity of its row: rows 0, 2, … give zero.
  const i64 units = 2049;
  const i64 depth = 2048;
  Tensor w = Tensor::allocate(ElementType::I8, {units, depth});
  for (i64 i = 0; i < w.num_elements(); ++i)
    w.mutable_as<i8>()[i] = static_cast<i8>(i / depth % 2 ? i / depth % 5 : 0);
  Tensor x = Tensor::allocate(ElementType::F32, {2, depth});
  for (i64 i = 0; i < x.num_elements(); ++i)
    x.mutable_as<float>()[i] = i < depth ? 1 : 2;
  const auto out = run(R"(graph @q(%x: f32[2,2048], %w: i8[2049,2048] quant(0.5:0)) {
    %y = circle.fully_connected(%x, %w, none) {keep_num_dims = true} : f32[2,2049]
    return %y
  })",
                       {x, w});
  ASSERT_EQ(out.size(), 1u);
  for (i64 r = 0; r < units; ++r) {
    const double want = r % 2 ? static_cast<double>(r % 5) * 0.5 * static_cast<double>(depth) : 0;
    ASSERT_EQ(out[0].at(r), want) << r;
    ASSERT_EQ(out[0].at(units + r), 2 * want) << r;
  }
}

TEST(Quantized, TablesAreReadAsStoredAndConvertedWhereTheyArrive) {
  const auto out = run(R"(graph @q(%t: i8[3,2] quant(0.5:1), %i: i32[1]) {
    %f = circle.gather(%t, %i) {axis = 0} : f32[1,2]
    %r = circle.gather(%t, %i) {axis = 0} : i16[1,2] quant(0.25:0)
    return %f, %r
  })",
                       {bytes({3, 2}, {0, 0, 1, 3, 5, -3}),
                        Tensor::of(ElementType::I32, {1}, std::span<const i32>(std::array{2}))});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(values(out[0]), (std::vector<double>{2, -2}));
  EXPECT_EQ(values(out[1]), (std::vector<double>{8, -8}));
}

TEST(Quantized, WhatCannotComputeIsRefused) {
  std::string error;
  run(R"(graph @q(%x: f32[2]) {
    %y = circle.quantize(%x) : i8[2]
    return %y
  })",
      {Tensor::f32({2}, {1, 2})}, &error);
  EXPECT_EQ(error, "eval.kernel");
  run(R"(graph @q(%x: i8[2] quant(0.5:0)) {
    %y = circle.add(%x, %x) {fused_activation_function = "NONE"} : i8[2] quant(0:0)
    return %y
  })",
      {bytes({2}, {1, 2})}, &error);
  EXPECT_EQ(error, "eval.quantized");
}

} // namespace
} // namespace chute::eval

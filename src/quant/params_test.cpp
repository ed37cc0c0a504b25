#include "quant/params.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace chute::quant {
namespace {

using ir::Type;

class Params : public testing::Test {
protected:
  Type affine(ElementType e, std::initializer_list<ir::SymInt> shape, float scale, i64 zero) {
    return ctx.tensor_type(e, std::span(shape.begin(), shape.size()), per_tensor(ctx, scale, zero));
  }
  std::vector<i64> stored(const ir::Constant &c) {
    std::vector<i64> out;
    for (const std::byte b : c.bytes())
      out.push_back(c.type.element() == ElementType::I8 || c.type.element() == ElementType::I4
                        ? static_cast<i8>(b)
                        : static_cast<u8>(b));
    return out;
  }
  ir::Context ctx;
  ir::Graph graph{ctx};
};

TEST_F(Params, SmallestStorageThatHoldsARange) {
  EXPECT_EQ(storage_for({0, 15}), ElementType::U4);
  EXPECT_EQ(storage_for({-8, 7}), ElementType::I4);
  EXPECT_EQ(storage_for({-7, 7}), ElementType::I4);
  EXPECT_EQ(storage_for({0, 127}), ElementType::U8);
  EXPECT_EQ(storage_for({-127, 127}), ElementType::I8);
  EXPECT_EQ(storage_for({0, 65535}), ElementType::U16);
  EXPECT_EQ(storage_for({-32767, 32767}), ElementType::I16);
  EXPECT_EQ(storage_for({std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max()}),
            ElementType::I32);
  EXPECT_EQ(storage_for({0, i64{1} << 40}), std::nullopt);
}

TEST_F(Params, QuantizesWithTiesToEvenAndSaturates) {
  const std::vector<float> x{0.5f, 1.5f, 2.5f, -0.5f, 1e30f, -1e30f, NAN, -0.25f};
  const ir::Constant *c = quantize_values(graph, x, affine(ElementType::I8, {8}, 1.0f, 10));
  EXPECT_EQ(stored(*c), (std::vector<i64>{10, 12, 12, 10, 127, -128, -128, 10}));
}

TEST_F(Params, KeepsANarrowerRange) {
  const std::vector<float> x{-200.0f, 200.0f};
  const ir::Constant *c =
      quantize_values(graph, x, affine(ElementType::I8, {2}, 1.0f, 0), Range{-127, 127});
  EXPECT_EQ(stored(*c), (std::vector<i64>{-127, 127}));
}

TEST_F(Params, ScalesFollowTheirChannel) {
  const float scales[] = {1.0f, 0.5f};
  const i64 zeros[] = {0, 1};
  Quantization q;
  q.kind = ir::QuantKind::PerChannel;
  q.axis = 1;
  q.scales = scales;
  q.zero_points = zeros;
  const ir::SymInt shape[] = {2, 2, 2};
  const Type type = ctx.tensor_type(ElementType::U4, shape, ctx.quantization(q));
  const std::vector<float> x{1, 2, 1, 2, 3, 4, 3, 100};
  const ir::Constant *c = quantize_values(graph, x, type);
  EXPECT_EQ(stored(*c), (std::vector<i64>{1, 2, 3, 5, 3, 4, 7, 15}));
  const std::vector<float> back = real_values(*c);
  EXPECT_EQ(back, (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 7}));
}

TEST_F(Params, WideIntegersSaturateWithoutOverflow) {
  const std::vector<float> x{3e38f, -3e38f, 5.0f};
  const ir::Constant *c = quantize_values(graph, x, affine(ElementType::I64, {3}, 0.5f, 0));
  const i64 *v = reinterpret_cast<const i64 *>(c->data);
  EXPECT_EQ(v[0], std::numeric_limits<i64>::max());
  EXPECT_EQ(v[1], std::numeric_limits<i64>::min());
  EXPECT_EQ(v[2], 10);
}

TEST_F(Params, FitsNumbersThatTheTypeHoldsExactly) {
  EXPECT_TRUE(fit(std::vector<float>{0.3f, 0.3f}, ElementType::U8)->exact());
  EXPECT_TRUE(fit(std::vector<float>{0.0f, -120.0f}, ElementType::U8)->exact());
  EXPECT_TRUE(
      fit(std::vector<float>{0.0f, -std::numeric_limits<float>::max()}, ElementType::I16)->exact());
  EXPECT_FALSE(fit(std::vector<float>{0.123f, -1.0f, 0.777f}, ElementType::I8)->exact());
  EXPECT_FALSE(fit(std::vector<float>{-INFINITY}, ElementType::I16).has_value());
  EXPECT_TRUE(fit(std::vector<float>{0.0f}, ElementType::I16)->exact());
}

TEST_F(Params, WideningKeepsEveryStoredValue) {
  const Type u8_type = affine(ElementType::U8, {1}, 0.1f, 200);
  const Quantization *to_i16 = widened(ctx, u8_type, ElementType::I16);
  ASSERT_TRUE(to_i16);
  EXPECT_EQ(to_i16->scales[0], 0.1f);
  EXPECT_EQ(to_i16->zero_points[0], 0);
  EXPECT_EQ(widened(ctx, u8_type, ElementType::I8)->zero_points[0], 72);
  EXPECT_EQ(widened(ctx, affine(ElementType::I4, {1}, 1, -8), ElementType::U8)->zero_points[0], 0);
  EXPECT_EQ(widened(ctx, affine(ElementType::I16, {1}, 1, 0), ElementType::U8), nullptr);
}

TEST_F(Params, CoveringReachesTheFarEnd) {
  const Quantization *q = covering(ctx, affine(ElementType::U8, {1}, 0.5f, 55), ElementType::I16);
  ASSERT_TRUE(q);
  EXPECT_FLOAT_EQ(q->scales[0], 200 * 0.5f / 32767);
  EXPECT_EQ(q->zero_points[0], 0);
}

} // namespace
} // namespace chute::quant

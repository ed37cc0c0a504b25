#include "ir/constant.h"

#include "ir/element_convert.h"
#include "ir/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

namespace chute::ir {
namespace {

class ConstantTest : public ::testing::Test {
protected:
  ConstantTest() { register_core_dialect(); }
  const Constant *view(std::initializer_list<SymInt> shape, std::vector<i64> strides,
                       size_t offset = 0) {
    return g.add_constant(ctx.tensor_type(ElementType::I32, shape),
                          reinterpret_cast<const std::byte *>(data->data() + offset), data,
                          strides);
  }
  static std::vector<i32> dense(const Constant &c) {
    std::vector<i32> out(static_cast<size_t>(c.num_elements()));
    c.copy_dense(reinterpret_cast<std::byte *>(out.data()));
    return out;
  }
  Context ctx;
  Graph g{ctx};
  std::shared_ptr<std::vector<i32>> data = [] {
    auto v = std::make_shared<std::vector<i32>>(24);
    std::iota(v->begin(), v->end(), 0);
    return v;
  }();
};

TEST_F(ConstantTest, StridesGiveRowMajorOrder) {
  EXPECT_EQ(dense(*view({2, 3}, {1, 2})), (std::vector<i32>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(dense(*view({2, 2}, {6, 2}, 3)), (std::vector<i32>{3, 5, 9, 11}));
  EXPECT_EQ(dense(*view({2, 3}, {0, 1})), (std::vector<i32>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(dense(*view({3}, {0}, 5)), (std::vector<i32>{5, 5, 5}));
  EXPECT_EQ(dense(*view({2, 2, 2}, {2, 12, 1})), (std::vector<i32>{0, 1, 12, 13, 2, 3, 14, 15}));
  EXPECT_EQ(dense(*view({2, 1, 2}, {12, 99, 6})), (std::vector<i32>{0, 6, 12, 18}));
}

TEST_F(ConstantTest, RowMajorStridesAreDense) {
  EXPECT_TRUE(view({2, 3}, {3, 1})->is_dense());
  EXPECT_TRUE(view({2, 1, 3}, {3, 77, 1})->is_dense());
  EXPECT_TRUE(view({0, 3}, {5, 5})->is_dense());
  EXPECT_TRUE(view({}, {})->is_dense());
  EXPECT_FALSE(view({2, 3}, {4, 1})->is_dense());
  EXPECT_FALSE(view({3}, {0})->is_dense());
}

TEST_F(ConstantTest, HashIsOfContentTypeAndShape) {
  const Constant *strided = view({2, 3}, {1, 2});
  const std::vector<i32> same = dense(*strided);
  const Constant *copy = g.add_copy(strided->type, std::as_bytes(std::span(same)));
  EXPECT_EQ(strided->hash(), copy->hash());
  EXPECT_TRUE(same_content(*strided, *copy));
  const Constant *other_shape =
      g.add_copy(ctx.tensor_type(ElementType::I32, {3, 2}), std::as_bytes(std::span(same)));
  const Constant *other_type =
      g.add_copy(ctx.tensor_type(ElementType::U32, {2, 3}), std::as_bytes(std::span(same)));
  EXPECT_FALSE(copy->hash() == other_shape->hash());
  EXPECT_FALSE(copy->hash() == other_type->hash());
  EXPECT_FALSE(same_content(*copy, *other_shape));
  u64 hashed = 0;
  copy->hash(&hashed);
  EXPECT_EQ(hashed, 0u) << "computed once";
}

TEST_F(ConstantTest, WithoutDataEqualsItselfOnly) {
  const Type t = ctx.tensor_type(ElementType::F32, {2});
  const Constant *a = g.add_constant(t, nullptr, nullptr, {}, false);
  const Constant *b = g.add_constant(t, nullptr, nullptr, {}, false);
  EXPECT_TRUE(same_content(*a, *a));
  EXPECT_FALSE(same_content(*a, *b));
  EXPECT_FALSE(a->hash() == b->hash());
}

TEST_F(ConstantTest, OwnerOutlivesTheCallers) {
  std::weak_ptr<std::vector<i32>> watch = data;
  {
    Graph inner(ctx);
    inner.add_constant(ctx.tensor_type(ElementType::I32, {2}),
                       reinterpret_cast<const std::byte *>(data->data()), data);
    data.reset();
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ElementConvert, EveryTypeLoadsWhatItStored) {
  for (int i = 0; i < kNumElementTypes; ++i) {
    const auto t = static_cast<ElementType>(i);
    std::byte bytes[16] = {};
    store_element(t, 1.0, bytes);
    const double expected = element_bytes(t) == 0 ? 0.0 : 1.0; // text, handles: no numbers
    EXPECT_EQ(load_element(t, bytes), expected) << element_type_name(t);
    store_element_int(t, 1, bytes);
    EXPECT_EQ(load_element_int(t, bytes), static_cast<i64>(expected)) << element_type_name(t);
    // Nothing beyond the element is touched.
    for (size_t k = static_cast<size_t>(element_bytes(t)); k < 16; ++k)
      EXPECT_EQ(bytes[k], std::byte{0}) << element_type_name(t);
    EXPECT_EQ(parse_element_type(element_type_name(t)), t);
  }
}

TEST(ElementConvert, ConvertsAsTorchDoes) {
  std::byte bytes[16] = {};
  store_element(ElementType::I32, -1.9, bytes);
  EXPECT_EQ(load_element_int(ElementType::I32, bytes), -1);
  store_element(ElementType::U8, 300.0, bytes);
  EXPECT_EQ(load_element_int(ElementType::U8, bytes), 44);
  store_element(ElementType::Bool, -0.5, bytes);
  EXPECT_EQ(load_element_int(ElementType::Bool, bytes), 1);
  store_element(ElementType::I64, std::nan(""), bytes);
  EXPECT_EQ(load_element_int(ElementType::I64, bytes), std::numeric_limits<i64>::min());
  store_element_int(ElementType::I64, (i64{1} << 53) + 1, bytes);
  EXPECT_EQ(load_element_int(ElementType::I64, bytes), (i64{1} << 53) + 1);
  store_element(ElementType::F16, 65520.0, bytes);
  EXPECT_TRUE(std::isinf(load_element(ElementType::F16, bytes)));
  const std::array<double, 8> fp4{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (u8 code = 0; code < 16; ++code) {
    bytes[0] = static_cast<std::byte>(code);
    const double v = load_element(ElementType::MXFP4, bytes);
    EXPECT_EQ(std::fabs(v), fp4[code & 7]);
    store_element(ElementType::MXFP4, v, bytes);
    EXPECT_EQ(static_cast<u8>(bytes[0]), code);
  }
  store_element(ElementType::MXFP4, 2.5, bytes); // a tie goes to the even code
  EXPECT_EQ(load_element(ElementType::MXFP4, bytes), 2.0);
  store_element(ElementType::MXINT8, 5.0, bytes);
  EXPECT_EQ(load_element(ElementType::MXINT8, bytes), 127.0 / 64);
}

} // namespace
} // namespace chute::ir

// Files: what is written is read back as the same program, equal bytes for equal graphs, and
// damaged files are findings.
#include "aten/ops.h"
#include "tosa/ops.h"
#include "tosa/reader.h"
#include "tosa/verify.h"
#include "tosa/writer.h"

#include "ir/context.h"
#include "ir/text.h"

#include <cstring>
#include <gtest/gtest.h>

namespace chute::tosa {
namespace {

constexpr const char *kProgram =
    R"(graph @main(%x: f32[1,4,4,2], %i: i8[3]) -> ("y": f32[1,4,4,3], "t": i8[3], "c": f32[2]) {
  %w = core.constant dense<[[[[1.0, 2.0]]], [[[3.0, 4.0]]], [[[5.0, 6.0]]]]> : f32[3,1,1,2]
  %b = core.constant dense<[0.5, 1.5, 2.5]> : f32[3]
  %z = core.constant dense<[0.0]> : f32[1]
  %0 = tosa.conv2d(%x, %w, %b, %z, %z) {pad = [0, 0, 0, 0], stride = [1, 1], dilation = [1, 1], acc_type = f32} : f32[1,4,4,3]
  %1 = tosa.clamp(%0) {min_val = 0.0, max_val = inf} : f32[1,4,4,3]
  %m = core.constant dense<[1073741824]> : i32[1]
  %s = core.constant dense<[30]> : i8[1]
  %q = core.constant dense<[3]> : i8[1]
  %2 = tosa.rescale(%i, %m, %s, %q, %q) {scale32 = true, rounding_mode = "SINGLE_ROUND", per_channel = false} : i8[3]
  %n = core.constant dense<[1, 2]> : i64[2]
  %k = core.constant dense<[7.0, 8.0]> : f32[2]
  %3 = tosa.reshape(%k, %n) : f32[1,2]
  %4 = tosa.reduce_max(%3) {axis = 0, nan_mode = "IGNORE"} : f32[1,2]
  %f = core.constant dense<[2]> : i64[1]
  %5 = tosa.reshape(%4, %f) : f32[2]
  return %1, %2, %5
})";

class TosaFile : public ::testing::Test {
protected:
  TosaFile() {
    register_dialect();
    auto g = ir::parse(ctx, kProgram);
    EXPECT_TRUE(g) << (g ? "" : to_text(g.error()));
    graph = std::move(*g);
  }
  std::vector<std::byte> bytes() {
    auto b = write_bytes(*graph);
    EXPECT_TRUE(b) << (b ? "" : to_text(b.error()));
    return *b;
  }
  ir::Context ctx;
  std::unique_ptr<ir::Graph> graph;
};

TEST_F(TosaFile, WrittenIsRead) {
  const auto first = bytes();
  EXPECT_EQ(first, bytes()) << "equal graphs, equal bytes";
  auto model = read_model(ctx, first, nullptr);
  ASSERT_TRUE(model) << to_text(model.error());
  EXPECT_EQ(model->minor, 0);
  EXPECT_FALSE(model->draft);
  ASSERT_EQ(model->graph->inputs().size(), 2u);
  EXPECT_EQ(model->graph->inputs()[1].name, "i");
  EXPECT_EQ(model->graph->outputs()[2].name, "c");
  const auto again = write_bytes(*model->graph, {.minor = {}, .locations = false});
  auto second = read_model(ctx, *again, nullptr);
  ASSERT_TRUE(second);
  EXPECT_EQ(*again, *write_bytes(*second->graph, {.minor = {}, .locations = false}));
  Diagnostics d;
  verify(ctx, first, *parse_target("tosa-1.0+int+fp"), d);
  EXPECT_FALSE(d.has_errors()) << to_text(d.all()[0]);
}

TEST_F(TosaFile, EqualConstantsAreWrittenOnce) {
  WriteStats stats;
  ASSERT_TRUE(write_bytes(*graph, {}, &stats));
  // w, b, z, m, s, q, k and the shapes n and f; z and q are operands twice.
  EXPECT_EQ(stats.constants, 9u);
  EXPECT_EQ(stats.operators, 9u + 6u);
}

TEST_F(TosaFile, DamageIsAFinding) {
  const auto whole = bytes();
  // Every truncation, and every byte changed in three ways: an error or a program, never a crash.
  for (size_t n = 0; n < whole.size(); n += 7) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    ir::Context fresh;
    EXPECT_FALSE(read_model(fresh, cut, nullptr) && n < 64);
  }
  for (size_t i = 0; i < whole.size(); ++i)
    for (const u8 flip : {u8{1}, u8{0x80}, u8{0xFF}}) {
      std::vector<std::byte> changed = whole;
      changed[i] ^= std::byte{flip};
      ir::Context fresh;
      Diagnostics d;
      verify(fresh, changed, *parse_target("tosa-1.1"), d);
    }
}

TEST_F(TosaFile, ContractsAreChecked) {
  auto g = ir::parse(ctx, "graph @main(%x: f32[2]) -> (\"y\": f32[3]) {\n"
                          "  %0 = tosa.tanh(%x) : f32[3]\n  return %0\n}");
  ASSERT_TRUE(g);
  const auto b = write_bytes(**g);
  ASSERT_TRUE(b);
  Diagnostics d;
  verify(ctx, *b, *parse_target("tosa-1.0"), d);
  ASSERT_TRUE(d.has_errors());
  EXPECT_EQ(d.all()[0].code, "tosa.operator.contract");
}

TEST_F(TosaFile, OtherDialectsAreNamed) {
  aten::register_dialect();
  auto g = ir::parse(ctx, "graph @main(%x: f32[2]) -> (\"y\": f32[2]) {\n"
                          "  %0 = aten.relu.default(%x) : f32[2]\n  return %0\n}");
  ASSERT_TRUE(g);
  const auto b = write_bytes(**g);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, "tosa.write.operator");
  EXPECT_NE(b.error().message.find("aten.relu.default"), std::string::npos);
}

} // namespace
} // namespace chute::tosa

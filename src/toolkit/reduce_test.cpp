#include "toolkit/reduce.h"

#include "circle/ops.h"
#include "circle/reader.h"
#include "circle/writer.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <gmock/gmock.h>

namespace chute::toolkit {
namespace {

/// A long program: f32 chains with a softmax in the middle, weights, several outputs.
std::string program(int n) {
  std::string text = "graph @main(%x: f32[8,8]) -> (\"a\": f32[8,8], \"b\": f32[8,8]) {\n";
  std::string last = "x";
  for (int i = 0; i < n; ++i) {
    const std::string s = std::to_string(i);
    text += "  %w" + s + " = core.constant rand(" + s + ", -1.0, 1.0) : f32[8,8]\n";
    text += "  %m" + s + " = circle.mul(%" + last + ", %w" + s + ")\n";
    text += "  %r" + s + " = circle." + std::string(i == n / 2 ? "softmax" : "relu") + "(%m" + s +
            ")" + (i == n / 2 ? " {beta = 1.0}" : "") + "\n";
    last = "r" + s;
  }
  return text + "  %z = circle.tanh(%" + last + ")\n  return %" + last + ", %z\n}";
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto b = std::as_bytes(std::span(text));
  return {b.begin(), b.end()};
}

size_t count(std::span<const std::byte> bytes, std::string_view what) {
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; ++at)
    ++n;
  return n;
}

class ReduceTest : public ::testing::Test {
protected:
  void SetUp() override { circle::register_dialect(); }
};

TEST_F(ReduceTest, FindsTheOneOperatorThatMatters) {
  ReduceOptions options;
  options.text = true;
  options.test = [](std::span<const std::byte> b) { return count(b, "circle.softmax") > 0; };
  const auto r = reduce(bytes_of(program(60)), options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->after.operators, 1u);
  EXPECT_EQ(r->after.constant_bytes, 0u);
  EXPECT_EQ(count(r->bytes, "circle."), 1u);
  EXPECT_LE(r->tests, 80u);
  EXPECT_FALSE(r->exhausted);
}

TEST_F(ReduceTest, KeepsWhatBelongsTogether) {
  ReduceOptions options;
  options.text = true;
  // Two operators far apart that depend on each other.
  options.test = [](std::span<const std::byte> b) {
    return count(b, "circle.softmax") > 0 && count(b, "circle.tanh") > 0;
  };
  const auto r = reduce(bytes_of(program(40)), options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->after.operators, 2u);
}

/// Large tensors are made small: layers, reshapes and slices follow, what the fault needs stays.
TEST_F(ReduceTest, MakesTensorsSmall) {
  const std::string text = R"(graph @main(%x: f32[64,48]) -> ("y": f32[64,6,8], "z": f32[32,48]) {
  %w = core.constant rand(1, -1.0, 1.0) : f32[48,48]
  %a = circle.fully_connected(%x, %w, none) {keep_num_dims = true} : f32[64,48]
  %s = core.constant dense<[64, 6, 8]> : i32[3]
  %b = circle.reshape(%a, %s) {new_shape = [64, 6, 8]} : f32[64,6,8]
  %y = circle.softmax(%b) {beta = 1.0} : f32[64,6,8]
  %zero = core.constant dense<[0, 0]> : i32[2]
  %size = core.constant dense<[32, 48]> : i32[2]
  %z = circle.slice(%a, %zero, %size) : f32[32,48]
  return %y, %z
})";
  ReduceOptions options;
  options.text = true;
  // The fault needs a layer whose result is reshaped to three dimensions, with three rows or more.
  options.test = [](std::span<const std::byte> b) {
    ir::Context ctx;
    auto g = ir::parse(ctx, {reinterpret_cast<const char *>(b.data()), b.size()});
    if (!g)
      return false;
    bool layer = false, view = false;
    ir::walk(**g, [&](const ir::Op &op) {
      layer = layer || op.opcode() == circle::op::FULLY_CONNECTED;
      view = view || (op.opcode() == circle::op::RESHAPE && op.result()->type().rank() == 3 &&
                      op.operand(0)->type().dim(0).value() >= 3);
    });
    return layer && view;
  };
  const auto r = reduce(bytes_of(text), options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->after.operators, 2u);
  EXPECT_LE(r->after.elements, 3u * 3 * 4)
      << std::string(reinterpret_cast<const char *>(r->bytes.data()), r->bytes.size());
  EXPECT_EQ(r->before.elements, 64u * 48 * 3 + 64 * 48 + 32 * 48);
}

TEST_F(ReduceTest, IsDeterministicAndCountsItsTests) {
  std::vector<std::byte> first;
  u64 tests = 0;
  for (int i = 0; i < 2; ++i) {
    ReduceOptions options;
    options.text = true;
    u64 calls = 0;
    options.test = [&](std::span<const std::byte> b) {
      ++calls;
      return count(b, "relu") >= 3;
    };
    const auto r = reduce(bytes_of(program(20)), options);
    ASSERT_TRUE(r);
    EXPECT_EQ(calls, r->tests);
    EXPECT_EQ(r->after.operators, 3u);
    if (i) {
      EXPECT_EQ(r->bytes, first);
      EXPECT_EQ(r->tests, tests);
    }
    first = r->bytes;
    tests = r->tests;
  }
}

TEST_F(ReduceTest, CircleFilesStayCircleFiles) {
  ir::Context ctx;
  auto graph = ir::parse(ctx, program(12));
  ASSERT_TRUE(graph);
  auto file = circle::write_bytes(**graph);
  ASSERT_TRUE(file);
  ReduceOptions options;
  options.test = [](std::span<const std::byte> b) -> Result<bool> {
    ir::Context c;
    auto model = circle::read_model(c, b, nullptr);
    if (!model)
      return tl::unexpected(model.error());
    bool found = false;
    ir::walk(*model->graph,
             [&](ir::Op &op) { found = found || op.opcode() == circle::op::SOFTMAX; });
    return found;
  };
  const auto r = reduce(*file, options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->after.operators, 1u);
  EXPECT_LT(r->bytes.size(), file->size() / 2);
}

TEST_F(ReduceTest, ATestThatSaysNoOrFailsIsAnError) {
  ReduceOptions options;
  options.text = true;
  options.test = [](std::span<const std::byte>) { return false; };
  EXPECT_EQ(reduce(bytes_of(program(3)), options).error().code, "toolkit.reduce.test");
  u64 calls = 0;
  options.test = [&](std::span<const std::byte>) -> Result<bool> {
    if (++calls > 3)
      return fail(ErrorKind::Failure, "x", "broken");
    return true;
  };
  EXPECT_EQ(reduce(bytes_of(program(9)), options).error().code, "x");
  options.test = [](std::span<const std::byte>) { return true; };
  options.most_tests = 2;
  EXPECT_TRUE(reduce(bytes_of(program(9)), options)->exhausted);
  EXPECT_FALSE(reduce(bytes_of("garbage"), options));
}

} // namespace
} // namespace chute::toolkit

// Result types of Circle operators: text in, inferred types out.
#include "circle/infer.h"
#include "circle/ops.h"
#include "ir/text.h"

#include <gtest/gtest.h>

namespace chute::circle {
namespace {

class InferTest : public ::testing::Test {
protected:
  InferTest() { register_dialect(); }

  /// Types of what the last operator gives, "f32[2,3] i32[2]", or the error.
  std::string infer(std::string args, std::string body) {
    const std::string text = "graph @t(" + args + ") {\n" + body + "\n return }";
    auto g = ir::parse(ctx, text);
    if (!g)
      return g.error().code == "ir.parse" ? to_text(g.error()) : g.error().message;
    const ir::Op *last = (*g)->return_op()->previous();
    std::string out;
    for (const ir::Value &r : last->results())
      out += (out.empty() ? "" : " ") + ir::print(ctx, r.type());
    return out;
  }
  ir::Context ctx;
};

TEST_F(InferTest, Elementwise) {
  EXPECT_EQ(infer("%x: f32[4,1,3], %y: f32[2,1]", "%0 = circle.add(%x, %y)"), "f32[4,2,3]");
  EXPECT_EQ(infer("%x: f32[s0,3], %y: f32[1,3]", "%0 = circle.mul(%x, %y)"), "f32[s0,3]");
  EXPECT_EQ(infer("%x: f32[s0,3], %y: f32[5,3]", "%0 = circle.mul(%x, %y)"), "f32[5,3]");
  EXPECT_EQ(infer("%x: f32[4], %y: f32[4]", "%0 = circle.less(%x, %y)"), "bool[4]");
  EXPECT_EQ(infer("%c: bool[3], %x: f32[2,1], %y: f32[1,3]", "%0 = circle.select_v2(%c, %x, %y)"),
            "f32[2,3]");
  EXPECT_EQ(infer("%x: f32[2]", "%0 = circle.cast(%x) {in_data_type = f32, out_data_type = i64}"),
            "i64[2]");
  EXPECT_NE(infer("%x: f32[4], %y: f32[3]", "%0 = circle.add(%x, %y)").find("do not broadcast"),
            std::string::npos);
  EXPECT_NE(infer("%x: f32[4], %y: i32[4]", "%0 = circle.add(%x, %y)").find("element types"),
            std::string::npos);
}

TEST_F(InferTest, Views) {
  const std::string shape = "%s = core.constant dense<[2, -1]> : i32[2]\n";
  EXPECT_EQ(infer("%x: f32[4,3]", shape + "%0 = circle.reshape(%x, %s)"), "f32[2,6]");
  EXPECT_EQ(infer("%x: f32[s0,4]", shape + "%0 = circle.reshape(%x, %s)"), "f32[2,2*s0]");
  EXPECT_EQ(infer("%x: f32[4,3]", "%0 = circle.reshape(%x, none) {new_shape = [12]}"), "f32[12]");
  EXPECT_NE(infer("%x: f32[5]", shape + "%0 = circle.reshape(%x, %s)").find("cannot view"),
            std::string::npos);
  EXPECT_EQ(infer("%x: f32[1,3,1]", "%0 = circle.squeeze(%x) {squeeze_dims = [0]}"), "f32[3,1]");
  EXPECT_EQ(infer("%x: f32[1,3,1]", "%0 = circle.squeeze(%x)"), "f32[3]");
  EXPECT_EQ(infer("%x: f32[2,3]", "%a = core.constant dense<-1> : i32[]\n"
                                  "%0 = circle.expand_dims(%x, %a)"),
            "f32[2,3,1]");
  const std::string perm = "%p = core.constant dense<[1, 0]> : i32[2]\n";
  EXPECT_EQ(infer("%x: f32[2,3]", perm + "%0 = circle.transpose(%x, %p)"), "f32[3,2]");
  EXPECT_EQ(
      infer("%x: i8[2,3] quant(axis=0, [0.5:0, 0.25:0])", perm + "%0 = circle.transpose(%x, %p)"),
      infer("%x: i8[3,2] quant(axis=1, [0.5:0, 0.25:0])",
            "%p = core.constant dense<[0, 1]> : i32[2]\n%0 = circle.transpose(%x, %p)"));
}

TEST_F(InferTest, JoinsAndSlices) {
  EXPECT_EQ(infer("%x: f32[2,3], %y: f32[2,s1]", "%0 = circle.concatenation(%x, %y) {axis = -1}"),
            "f32[2,s1 + 3]");
  EXPECT_EQ(
      infer("%x: f32[2], %y: f32[2]", "%0 = circle.pack(%x, %y) {values_count = 2, axis = 1}"),
      "f32[2,2]");
  EXPECT_EQ(infer("%x: f32[2,3]", "%0, %1 = circle.unpack(%x) {num = 2, axis = 0}"),
            "f32[3] f32[3]");
  EXPECT_EQ(infer("%x: f32[7]", "%s = core.constant dense<[2, -1]> : i32[2]\n"
                                "%a = core.constant dense<0> : i32[]\n"
                                "%0, %1 = circle.split_v(%x, %s, %a) {num_splits = 2}"),
            "f32[2] f32[5]");
  const auto slice = [&](std::string args, std::string b, std::string e, std::string s,
                         std::string attrs = "") {
    return infer(args, "%b = core.constant dense<[" + b +
                           "]> : i32[2]\n%e = core.constant dense<[" + e +
                           "]> : i32[2]\n%s = core.constant dense<[" + s +
                           "]> : i32[2]\n%0 = circle.strided_slice(%x, %b, %e, %s)" + attrs);
  };
  EXPECT_EQ(slice("%x: f32[4,9]", "1, 0", "3, 9", "1, 2"), "f32[2,5]");
  EXPECT_EQ(slice("%x: f32[4,9]", "-1, 8", "-100, 0", "-1, -3"), "f32[4,3]");
  EXPECT_EQ(slice("%x: f32[4,9]", "0, 2", "4, 2147483647", "1, 1"), "f32[4,7]");
  EXPECT_EQ(slice("%x: f32[4,9]", "2, 0", "0, 0", "1, 1", " {shrink_axis_mask = 1, end_mask = 2}"),
            "f32[9]");
  EXPECT_EQ(slice("%x: f32[s0,9]", "0, 1", "0, 3", "1, 1", " {begin_mask = 1, end_mask = 1}"),
            "f32[s0,2]");
  EXPECT_EQ(slice("%x: f32[s0,9]", "-2, 1", "2147483647, 3", "1, 1"), "f32[2,2]");
}

TEST_F(InferTest, Contractions) {
  const std::string conv = "{padding = \"SAME\", stride_w = 2, stride_h = 2}";
  EXPECT_EQ(
      infer("%x: f32[1,9,8,3], %w: f32[5,3,3,3]", "%0 = circle.conv_2d(%x, %w, none) " + conv),
      "f32[1,5,4,5]");
  EXPECT_EQ(infer("%x: f32[s0,9,8,4], %w: f32[6,3,3,2], %b: f32[6]",
                  "%0 = circle.conv_2d(%x, %w, %b) {padding = \"VALID\", stride_w = 1, "
                  "stride_h = 1, dilation_h_factor = 2}"),
            "f32[s0,5,6,6]");
  EXPECT_EQ(infer("%x: f32[1,9,8,3], %w: f32[1,3,3,6]",
                  "%0 = circle.depthwise_conv_2d(%x, %w, none) {padding = \"SAME\", stride_w = 1, "
                  "stride_h = 1, depth_multiplier = 2}"),
            "f32[1,9,8,6]");
  EXPECT_EQ(infer("%x: f32[2,s1,4], %w: f32[5,4]",
                  "%0 = circle.fully_connected(%x, %w, none) {keep_num_dims = true}"),
            "f32[2,s1,5]");
  EXPECT_EQ(infer("%x: f32[2,3,4], %w: f32[5,4]", "%0 = circle.fully_connected(%x, %w, none)"),
            "f32[6,5]");
  EXPECT_EQ(infer("%x: f32[7,1,2,4], %y: f32[3,5,4]",
                  "%0 = circle.batch_matmul(%x, %y) {adjoint_rhs = true}"),
            "f32[7,3,2,5]");
  EXPECT_NE(infer("%x: f32[2,4], %y: f32[5,3]", "%0 = circle.batch_matmul(%x, %y)").find("inner"),
            std::string::npos);
  EXPECT_EQ(infer("%x: f32[1,7,7,2]",
                  "%0 = circle.max_pool_2d(%x) {padding = \"VALID\", stride_w = 2, "
                  "stride_h = 2, filter_width = 3, filter_height = 3}"),
            "f32[1,3,3,2]");
}

TEST_F(InferTest, ReductionsAndIndices) {
  const std::string axes = "%a = core.constant dense<[0, -1]> : i32[2]\n";
  EXPECT_EQ(infer("%x: f32[2,3,4]", axes + "%0 = circle.mean(%x, %a) {keep_dims = true}"),
            "f32[1,3,1]");
  EXPECT_EQ(infer("%x: f32[2,3,4]", axes + "%0 = circle.sum(%x, %a)"), "f32[3]");
  EXPECT_EQ(infer("%x: f32[2,3]", "%a = core.constant dense<1> : i32[]\n"
                                  "%0 = circle.arg_max(%x, %a) {output_type = i64}"),
            "i64[2]");
  EXPECT_EQ(infer("%x: f32[2,9,4], %i: i64[2,5]",
                  "%0 = circle.gather(%x, %i) {axis = 1, batch_dims = 1}"),
            "f32[2,5,4]");
  EXPECT_EQ(infer("%x: f32[2,9,4], %i: i64[6,2]", "%0 = circle.gather_nd(%x, %i)"), "f32[6,4]");
  EXPECT_EQ(infer("%x: f32[2,9]", "%k = core.constant dense<3> : i32[]\n"
                                  "%0, %1 = circle.topk_v2(%x, %k)"),
            "f32[2,3] i32[2,3]");
}

/// Shapes that are computed from shapes at run time.
TEST_F(InferTest, ShapeArithmetic) {
  const std::string body = R"(
    %zero = core.constant dense<[0]> : i32[1]
    %one = core.constant dense<[1]> : i32[1]
    %four = core.constant dense<[4]> : i32[1]
    %shape = circle.shape(%x) {out_type = i32}
    %n = circle.strided_slice(%shape, %zero, %one, %one)
    %double = circle.mul(%n, %one)
    %to = circle.concatenation(%double, %four) {axis = 0}
    %0 = circle.broadcast_to(%x, %to))";
  EXPECT_EQ(infer("%x: f32[s0,1]", body), "f32[s0,4]");
  EXPECT_NE(infer("%x: f32[2], %s: i32[1]", "%0 = circle.reshape(%x, %s)").find("run-time"),
            std::string::npos);
}

TEST_F(InferTest, UnknownRulesSaySo) {
  EXPECT_NE(infer("%x: f32[2]", "%0 = circle.unique(%x)").find("no inference rule"),
            std::string::npos);
}

} // namespace
} // namespace chute::circle

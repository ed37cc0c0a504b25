// Circle operators against the ATen operators that they stand for, on the same random inputs.

#include "aten/ops.h"
#include "circle/ops.h"
#include "eval/evaluator.h"
#include "ir/text.h"

#include <gtest/gtest.h>
#include <random>

namespace chute::eval {
namespace {

std::vector<Tensor> random_inputs(const ir::Graph &graph) {
  std::mt19937 random(5);
  std::vector<Tensor> out;
  for (const ir::Value *arg : graph.body().args()) {
    Shape shape;
    for (const ir::SymInt d : arg->type().shape())
      shape.push_back(d.value());
    Tensor t = Tensor::allocate(arg->type().element(), shape);
    for (i64 i = 0; i < t.num_elements(); ++i) {
      const float v = std::uniform_real_distribution<float>(-2, 2)(random);
      if (t.element() == ElementType::F32)
        t.mutable_as<float>()[i] = v;
      else
        t.mutable_as<i32>()[i] = static_cast<i32>(v * 4);
    }
    out.push_back(std::move(t));
  }
  return out;
}

struct Pair {
  const char *name;
  const char *inputs;
  const char *circle; ///< body; its first result is %y
  const char *aten;
};

// NHWC operands; the ATen side permutes to NCHW and back.
const Pair kPairs[] = {
    {"conv_same", "%x: f32[1,7,6,4], %w: f32[6,3,2,2], %b: f32[6]",
     R"(%y = circle.conv_2d(%x, %w, %b) {padding = "SAME", stride_h = 2, stride_w = 1, fused_activation_function = "RELU6"} : f32[1,4,6,6])",
     R"(%p = aten.permute.default(%x) {dims = [0, 3, 1, 2]} : f32[1,4,7,6]
        %v = aten.permute.default(%w) {dims = [0, 3, 1, 2]} : f32[6,2,3,2]
        %q = aten.constant_pad_nd.default(%p) {pad = [0, 1, 1, 1]} : f32[1,4,9,7]
        %c = aten.conv2d.default(%q, %v, %b) {stride = [2, 1], groups = 2} : f32[1,6,4,6]
        %r = aten.relu6.default(%c) : f32[1,6,4,6]
        %y = aten.permute.default(%r) {dims = [0, 2, 3, 1]} : f32[1,4,6,6])"},
    {"depthwise", "%x: f32[2,6,6,3], %w: f32[1,3,3,6]",
     R"(%y = circle.depthwise_conv_2d(%x, %w, none) {padding = "VALID", stride_h = 1, stride_w = 1, depth_multiplier = 2, dilation_h_factor = 2, dilation_w_factor = 1} : f32[2,2,4,6])",
     R"(%p = aten.permute.default(%x) {dims = [0, 3, 1, 2]} : f32[2,3,6,6]
        %v = aten.permute.default(%w) {dims = [3, 0, 1, 2]} : f32[6,1,3,3]
        %c = aten.conv2d.default(%p, %v, none) {dilation = [2, 1], groups = 3} : f32[2,6,2,4]
        %y = aten.permute.default(%c) {dims = [0, 2, 3, 1]} : f32[2,2,4,6])"},
    {"transpose_conv", "%x: f32[1,3,4,2], %w: f32[5,3,3,2], %b: f32[5]",
     R"(%s = core.constant dense<[1, 6, 8, 5]> : i32[4]
        %y = circle.transpose_conv(%s, %w, %x, %b) {padding = "SAME", stride_h = 2, stride_w = 2} : f32[1,6,8,5])",
     // SAME from 6 to 3 pads (0, 1): the result is the full adjoint without its last row and
     // column.
     R"(%p = aten.permute.default(%x) {dims = [0, 3, 1, 2]} : f32[1,2,3,4]
        %v = aten.permute.default(%w) {dims = [3, 0, 1, 2]} : f32[2,5,3,3]
        %c = aten.conv_transpose2d.input(%p, %v, %b) {stride = [2, 2]} : f32[1,5,7,9]
        %d = aten.slice.Tensor(%c) {dim = 2, start = 0, end = 6, step = 1} : f32[1,5,6,9]
        %e = aten.slice.Tensor(%d) {dim = 3, start = 0, end = 8, step = 1} : f32[1,5,6,8]
        %y = aten.permute.default(%e) {dims = [0, 2, 3, 1]} : f32[1,6,8,5])"},
    {"average_pool", "%x: f32[1,5,5,2]",
     R"(%y = circle.average_pool_2d(%x) {padding = "SAME", stride_h = 2, stride_w = 2, filter_height = 3, filter_width = 3} : f32[1,3,3,2])",
     R"(%p = aten.permute.default(%x) {dims = [0, 3, 1, 2]} : f32[1,2,5,5]
        %c = aten.avg_pool2d.default(%p) {kernel_size = [3, 3], stride = [2, 2], padding = [1, 1], count_include_pad = false} : f32[1,2,3,3]
        %y = aten.permute.default(%c) {dims = [0, 2, 3, 1]} : f32[1,3,3,2])"},
    {"max_pool", "%x: f32[1,5,6,2]",
     R"(%y = circle.max_pool_2d(%x) {padding = "VALID", stride_h = 2, stride_w = 1, filter_height = 2, filter_width = 3} : f32[1,2,4,2])",
     R"(%p = aten.permute.default(%x) {dims = [0, 3, 1, 2]} : f32[1,2,5,6]
        %c = aten.max_pool2d.default(%p) {kernel_size = [2, 3], stride = [2, 1]} : f32[1,2,2,4]
        %y = aten.permute.default(%c) {dims = [0, 2, 3, 1]} : f32[1,2,4,2])"},
    {"resize", "%x: f32[1,3,4,2]",
     R"(%s = core.constant dense<[6, 7]> : i32[2]
        %y = circle.resize_bilinear(%x, %s) {align_corners = false, half_pixel_centers = true} : f32[1,6,7,2])",
     R"(%p = aten.permute.default(%x) {dims = [0, 3, 1, 2]} : f32[1,2,3,4]
        %c = aten.upsample_bilinear2d.vec(%p) {output_size = [6, 7], align_corners = false, scale_factors = none} : f32[1,2,6,7]
        %y = aten.permute.default(%c) {dims = [0, 2, 3, 1]} : f32[1,6,7,2])"},
    // Scaling by a whole factor without half pixels: even positions are elements, odd ones means.
    {"custom_resize", "%x: f32[1,1,2,1]",
     R"(%y = circle_custom.resize_bilinear.default(%x) {size = [1, 4], align_corners = false, half_pixel_centers = false} : f32[1,1,4,1])",
     R"(%m = aten.mean.dim(%x) {dim = [2], keepdim = true} : f32[1,1,1,1]
        %a = aten.slice.Tensor(%x) {dim = 2, start = 0, end = 1, step = 1} : f32[1,1,1,1]
        %b = aten.slice.Tensor(%x) {dim = 2, start = 1, end = 2, step = 1} : f32[1,1,1,1]
        %y = aten.cat.default(%a, %m, %b, %b) {dim = 2} : f32[1,1,4,1])"},
    {"fully_connected", "%x: f32[2,3,4], %w: f32[5,4], %b: f32[5]",
     R"(%y = circle.fully_connected(%x, %w, %b) {keep_num_dims = true, fused_activation_function = "RELU"} : f32[2,3,5])",
     R"(%l = aten.linear.default(%x, %w, %b) : f32[2,3,5]
        %y = aten.relu.default(%l) : f32[2,3,5])"},
    {"batch_matmul", "%x: f32[2,4,3], %w: f32[2,5,4]",
     R"(%y = circle.batch_matmul(%x, %w) {adjoint_lhs = true, adjoint_rhs = true} : f32[2,3,5])",
     R"(%a = aten.transpose.int(%x) {dim0 = 1, dim1 = 2} : f32[2,3,4]
        %b = aten.transpose.int(%w) {dim0 = 1, dim1 = 2} : f32[2,4,5]
        %y = aten.bmm.default(%a, %b) : f32[2,3,5])"},
    {"softmax", "%x: f32[3,5]", R"(%y = circle.softmax(%x) {beta = 1.0} : f32[3,5])",
     R"(%y = aten._softmax.default(%x) {dim = 1, half_to_float = false} : f32[3,5])"},
    {"mean", "%x: f32[3,5,2]",
     R"(%s = core.constant dense<[0, -1]> : i32[2]
        %y = circle.mean(%x, %s) {keep_dims = true} : f32[1,5,1])",
     R"(%y = aten.mean.dim(%x) {dim = [0, 2], keepdim = true} : f32[1,5,1])"},
    {"strided_slice", "%x: f32[5,6]",
     R"(%a = core.constant dense<[4, 1]> : i32[2]
        %b = core.constant dense<[0, 6]> : i32[2]
        %c = core.constant dense<[-2, 2]> : i32[2]
        %y = circle.strided_slice(%x, %a, %b, %c) {begin_mask = 0, end_mask = 1} : f32[3,3])",
     R"(%f = aten.flip.default(%x) {dims = [0]} : f32[5,6]
        %s = aten.slice.Tensor(%f) {dim = 0, start = 0, end = 5, step = 2} : f32[3,6]
        %y = aten.slice.Tensor(%s) {dim = 1, start = 1, end = 6, step = 2} : f32[3,3])"},
    {"gather", "%x: f32[4,5,2]",
     R"(%i = core.constant dense<[[3, 0], [1, 1]]> : i32[2,2]
        %y = circle.gather(%x, %i) {axis = 1} : f32[4,2,2,2])",
     R"(%i = core.constant dense<[[3, 0], [1, 1]]> : i64[2,2]
        %y = aten.index.Tensor(%x, none, %i) : f32[4,2,2,2])"},
    {"floor_mod", "%x: i32[6,1], %w: i32[5]",
     R"(%k = core.constant splat<3> : i32[5]
        %m = circle.floor_mod(%x, %k) : i32[6,5]
        %y = circle.sub(%m, %w) : i32[6,5])",
     R"(%k = core.constant splat<3> : i32[5]
        %m = aten.remainder.Tensor(%x, %k) : i32[6,5]
        %y = aten.sub.Tensor(%m, %w) : i32[6,5])"},
    {"mirror_pad", "%x: f32[3,4]",
     R"(%p = core.constant dense<[[1, 2], [0, 3]]> : i32[2,2]
        %y = circle.mirror_pad(%x, %p) {mode = "REFLECT"} : f32[6,7])",
     R"(%u = aten.unsqueeze.default(%x) {dim = 0} : f32[1,3,4]
        %r = aten.reflection_pad2d.default(%u) {padding = [0, 3, 1, 2]} : f32[1,6,7]
        %y = aten.squeeze.dim(%r) {dim = 0} : f32[6,7])"},
};

TEST(CircleKernels, AgreeWithAten) {
  aten::register_dialect();
  circle::register_dialect();
  for (const Pair &p : kPairs) {
    ir::Context context;
    std::vector<Tensor> results;
    for (const char *body : {p.circle, p.aten}) {
      const std::string text =
          "graph @" + std::string(p.name) + "(" + p.inputs + ") {\n" + body + "\n return %y\n}";
      const auto graph = ir::parse(context, text);
      ASSERT_TRUE(graph) << text << graph.error().message << graph.error().object;
      const auto out = evaluate(**graph, random_inputs(**graph));
      ASSERT_TRUE(out) << text << out.error().message;
      results.push_back((*out)[0]);
    }
    ASSERT_EQ(results[0].shape(), results[1].shape()) << p.name;
    for (i64 i = 0; i < results[0].num_elements(); ++i)
      ASSERT_NEAR(results[0].at(i), results[1].at(i), 1e-5) << p.name << " element " << i;
  }
}

} // namespace
} // namespace chute::eval

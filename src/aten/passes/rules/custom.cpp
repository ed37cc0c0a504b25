#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

// Operators of other libraries that ATen can express: TICO's channels-last operators become their
// ATen counterparts between two permutes, which layout passes remove again.
namespace chute::aten {

namespace {

V to_nchw(Emit &e, V x) { return e.permute(x, {0, 3, 1, 2}); }
V to_nhwc(Emit &e, V x) { return e.permute(x, {0, 2, 3, 1}); }

/// A list attribute as two numbers; `otherwise` when it is absent.
Attr pair(Emit &e, std::string_view name, i64 otherwise) {
  Shape s = e.sizes(name);
  if (s.empty())
    s = {otherwise, otherwise};
  if (s.size() == 1)
    s.push_back(s[0]);
  return e.ctx().ints_attr(s);
}

Attr groups(Emit &e) { return e.given("groups") ? e.attr("groups") : Attr::of_int(1); }

/// Circle's SAME: as many outputs as ceil(input / stride), the odd amount of padding at the end.
V pad_same(Emit &e, V x, V w, Attr stride, Attr dilation) {
  std::vector<i64> amounts;
  for (int i = 1; i >= 0; --i) {
    const SymInt in = x->type().dim(2 + i), k = w->type().dim(2 + i);
    const SymInt step = stride.as_ints()[size_t(i)], apart = dilation.as_ints()[size_t(i)];
    if (in.is_symbolic() || k.is_symbolic() || step.is_symbolic() || apart.is_symbolic())
      return e.reject("padding \"same\" of a size that is not static"), x;
    const i64 out = (in.value() + step.value() - 1) / step.value();
    const i64 total = std::max<i64>(
        (out - 1) * step.value() + (k.value() - 1) * apart.value() + 1 - in.value(), 0);
    amounts.push_back(total / 2);
    amounts.push_back(total - total / 2);
  }
  return e.pad(x, amounts, Attr::of_float(0));
}

/// `order` takes the weight to [out, in/groups, h, w].
V conv(Emit &e, const Axes &order) {
  V x = to_nchw(e, e.in(0)), w = e.permute(e.in(1), order);
  const Attr stride = pair(e, "stride", 1), dilation = pair(e, "dilation", 1);
  const Attr given = e.attr("padding");
  Attr padding = e.ctx().ints_attr({0, 0});
  if (given.kind() != ir::AttrKind::String)
    padding = pair(e, "padding", 0);
  else if (given.as_string() == "same" || given.as_string() == "SAME")
    x = pad_same(e, x, w, stride, dilation);
  return to_nhwc(e, e.op(op::conv2d, {x, w, e.in(2)},
                         {{"stride", stride},
                          {"padding", padding},
                          {"dilation", dilation},
                          {"groups", groups(e)}}));
}

V transpose_conv(Emit &e) {
  V x = to_nchw(e, e.in(0)), w = e.permute(e.in(1), {3, 0, 1, 2}); // [out, h, w, in]
  return to_nhwc(e, e.op(op::conv_transpose2d_input, {x, w, e.in(2)},
                         {{"stride", pair(e, "stride", 1)},
                          {"padding", pair(e, "padding", 0)},
                          {"output_padding", pair(e, "output_padding", 0)},
                          {"groups", groups(e)},
                          {"dilation", pair(e, "dilation", 1)}}));
}

bool flag_or(Emit &e, std::string_view name, bool otherwise) {
  return e.given(name) ? e.flag(name) : otherwise;
}

V max_pool(Emit &e) {
  const Attr stride = e.given("stride") ? e.attr("stride") : e.attr("kernel_size");
  return to_nhwc(e, e.op(op::max_pool2d, {to_nchw(e, e.in())},
                         {{"kernel_size", pair(e, "kernel_size", 1)},
                          {"stride", stride},
                          {"padding", pair(e, "padding", 0)},
                          {"dilation", pair(e, "dilation", 1)},
                          {"ceil_mode", Attr::of_bool(flag_or(e, "ceil_mode", false))}}));
}

V avg_pool(Emit &e) {
  const Attr stride = e.given("stride") ? e.attr("stride") : e.attr("kernel_size");
  const bool count = flag_or(e, "count_include_pad", true);
  return to_nhwc(e, e.op(op::avg_pool2d, {to_nchw(e, e.in())},
                         {{"kernel_size", pair(e, "kernel_size", 1)},
                          {"stride", stride},
                          {"padding", pair(e, "padding", 0)},
                          {"ceil_mode", Attr::of_bool(flag_or(e, "ceil_mode", false))},
                          {"count_include_pad", Attr::of_bool(count)},
                          {"divisor_override", e.attr("divisor_override")}}));
}

V instance_norm(Emit &e) {
  return to_nhwc(e,
                 e.op(op::instance_norm, {to_nchw(e, e.in(0)), e.in(1), e.in(2), e.in(3), e.in(4)},
                      {{"use_input_stats", e.attr("use_input_stats")},
                       {"momentum", e.attr("momentum")},
                       {"eps", e.attr("eps")},
                       {"cudnn_enabled", Attr::of_bool(false)}}));
}

V rms_norm(Emit &e) {
  V x = e.in(0);
  return e.op(op::rms_norm, {x, e.in(1)},
              {{"normalized_shape", e.ctx().ints_attr({x->type().dim(x->type().rank() - 1)})},
               {"eps", e.attr("eps")}});
}

/// Sampling at i * in / out, without half pixels, has no ATen form and stays.
V resize_bilinear(Emit &e) {
  const bool corners = e.flag("align_corners");
  if (!corners && !e.flag("half_pixel_centers"))
    return nullptr;
  return to_nhwc(e, e.op(op::upsample_bilinear2d_vec, {to_nchw(e, e.in())},
                         {{"output_size", e.attr("size")},
                          {"align_corners", Attr::of_bool(corners)},
                          {"scale_factors", Attr::none()}}));
}

V resize_nearest(Emit &e) {
  return to_nhwc(e, e.op(op::upsample_nearest2d_vec, {to_nchw(e, e.in())},
                         {{"output_size", e.attr("size")}, {"scale_factors", Attr::none()}}));
}

} // namespace

void add_custom_rules(pass::PatternSet &set) {
  set.add("custom-conv", {op::circle_custom_conv2d, op::circle_custom_conv2d_padding},
          rule<[](Emit &e) { return conv(e, {0, 3, 1, 2}); }>);
  set.add("custom-depthwise-conv",
          {op::circle_custom_depthwise_conv2d, op::circle_custom_depthwise_conv2d_padding},
          rule<[](Emit &e) { return conv(e, {3, 0, 1, 2}); }>);
  set.add("custom-transpose-conv", {op::circle_custom_transpose_conv}, rule<transpose_conv>);
  set.add("custom-max-pool", {op::circle_custom_maxpool2d}, rule<max_pool>);
  set.add("custom-avg-pool", {op::circle_custom_avgpool2d}, rule<avg_pool>);
  set.add("custom-instance-norm", {op::circle_custom_instance_norm}, rule<instance_norm>);
  set.add(
      "custom-prelu", {op::circle_custom_prelu},
      rule<[](Emit &e) { return e.where(e.gt(e.in(0), 0.0), e.in(0), e.mul(e.in(0), e.in(1))); }>);
  set.add("custom-rms-norm", {op::circle_custom_rms_norm}, rule<rms_norm>);
  set.add("custom-resize-bilinear", {op::circle_custom_resize_bilinear}, rule<resize_bilinear>);
  set.add("custom-resize-nearest", {op::circle_custom_resize_nearest_neighbor},
          rule<resize_nearest>);
  set.add("dim-order-copy", {op::dim_order_to_dim_order_copy},
          rule<[](Emit &e) { return e.cast(e.in(), e.type().element()); }>);
}

} // namespace chute::aten

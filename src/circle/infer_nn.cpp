// Contractions, convolutions, pooling, reductions.
#include "circle/infer_support.h"

namespace chute::circle {

using ir::ElementType;
using ir::SymInt;

namespace {

/// Output size of a window that slides over `size`: TFLite's SAME and VALID.
Result<SymInt> window_size(const Inference &in, SymInt size, SymInt kernel, i64 stride,
                           i64 dilation) {
  if (stride <= 0 || dilation <= 0)
    return in.bad("strides and dilations are positive");
  ir::SymTable &sym = in.sym();
  const std::string_view padding = in.string_attr("padding");
  if (padding == "SAME")
    return sym.ceildiv(size, stride);
  if (padding != "VALID")
    return in.bad("padding is SAME or VALID");
  const SymInt reach = sym.mul(sym.sub(kernel, 1), dilation);
  const SymInt n = sym.ceildiv(sym.sub(size, reach), stride);
  if (n.is_static() && n.value() <= 0 && size != SymInt(0))
    return in.bad("the window is larger than the operand");
  return n;
}

/// An element type that a contraction hands on: a quantized operand may have a wider accumulator.
Status same_operand_elements(const Inference &in, u32 a, u32 b) {
  const ElementType x = in.type(a).element(), y = in.type(b).element();
  if (x != y && ir::is_float(x) && ir::is_float(y))
    return in.bad("operands have different float types");
  return {};
}

Status check_bias(const Inference &in, u32 bias, SymInt channels) {
  if (!in.has(bias))
    return {};
  const ir::Type t = in.type(bias);
  if (t.has_static_shape() && channels.is_static() && t.num_elements() != channels.value())
    return in.bad("the bias has " + std::to_string(t.num_elements()) + " elements for " +
                  std::to_string(channels.value()) + " channels");
  return {};
}

} // namespace

Status infer_fully_connected(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(1, 2));
  CIRCLE_TRY(in.need_min_rank(0, 1));
  CIRCLE_TRY(same_operand_elements(in, 0, 1));
  const auto x = in.type(0).shape();
  const SymInt units = in.type(1).dim(0), depth = in.type(1).dim(1);
  CIRCLE_TRY(check_bias(in, 2, units));
  if (in.bool_attr("keep_num_dims")) {
    if (x.back().is_static() && depth.is_static() && x.back() != depth)
      return in.bad("the operand's last dimension is " + std::to_string(x.back().value()) +
                    ", the weights' is " + std::to_string(depth.value()));
    Dims shape = to_dims(x);
    shape.back() = units;
    return in.give(in.type(0).element(), shape);
  }
  const SymInt total = in.sym().product(x);
  if (depth.is_static() && depth.value() <= 0)
    return in.bad("the weights are empty");
  if (total.is_static() && depth.is_static() && total.value() % depth.value() != 0)
    return in.bad("the operand's " + std::to_string(total.value()) + " elements are not rows of " +
                  std::to_string(depth.value()));
  const auto rows = in.sym().exact_div(total, depth);
  return in.give(in.type(0).element(), Dims{rows ? *rows : in.sym().floordiv(total, depth), units});
}

Status infer_batch_matmul(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_min_rank(0, 2));
  CIRCLE_TRY(in.need_min_rank(1, 2));
  CIRCLE_TRY(same_operand_elements(in, 0, 1));
  const auto x = in.type(0).shape(), y = in.type(1).shape();
  const bool turn_x = in.bool_attr("adjoint_lhs"), turn_y = in.bool_attr("adjoint_rhs");
  const SymInt rows = x[x.size() - (turn_x ? 1 : 2)], inner_x = x[x.size() - (turn_x ? 2 : 1)];
  const SymInt inner_y = y[y.size() - (turn_y ? 1 : 2)], columns = y[y.size() - (turn_y ? 2 : 1)];
  if (inner_x.is_static() && inner_y.is_static() && inner_x != inner_y)
    return in.bad("inner dimensions " + std::to_string(inner_x.value()) + " and " +
                  std::to_string(inner_y.value()) + " differ");
  CIRCLE_TRY_TO(shape, in.broadcast(x.first(x.size() - 2), y.first(y.size() - 2)));
  shape.push_back(rows);
  shape.push_back(columns);
  return in.give(in.type(0).element(), shape);
}

Status infer_conv_2d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 4));
  CIRCLE_TRY(in.need_rank(1, 4));
  CIRCLE_TRY(same_operand_elements(in, 0, 1));
  const auto x = in.type(0).shape(), f = in.type(1).shape();
  // Groups are implicit: the filter's depth divides the operand's.
  if (x[3].is_static() && f[3].is_static() &&
      (f[3].value() <= 0 || x[3].value() % f[3].value() != 0))
    return in.bad("the operand's " + std::to_string(x[3].value()) +
                  " channels are no multiple of the filter's " + std::to_string(f[3].value()));
  CIRCLE_TRY(check_bias(in, 2, f[0]));
  CIRCLE_TRY_TO(
      h, window_size(in, x[1], f[1], in.int_attr("stride_h"), in.int_attr("dilation_h_factor")));
  CIRCLE_TRY_TO(
      w, window_size(in, x[2], f[2], in.int_attr("stride_w"), in.int_attr("dilation_w_factor")));
  return in.give(in.type(0).element(), Dims{x[0], h, w, f[0]});
}

Status infer_depthwise_conv_2d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 4));
  CIRCLE_TRY(in.need_rank(1, 4));
  CIRCLE_TRY(same_operand_elements(in, 0, 1));
  const auto x = in.type(0).shape(), f = in.type(1).shape();
  // depth_multiplier is redundant and some writers leave it 0.
  const i64 multiplier = in.int_attr("depth_multiplier");
  if (x[3].is_static() && f[3].is_static() &&
      (x[3].value() <= 0 || f[3].value() % x[3].value() != 0 ||
       (multiplier != 0 && f[3].value() / x[3].value() != multiplier)))
    return in.bad("the filter's channels are depth_multiplier times the operand's");
  CIRCLE_TRY(check_bias(in, 2, f[3]));
  CIRCLE_TRY_TO(
      h, window_size(in, x[1], f[1], in.int_attr("stride_h"), in.int_attr("dilation_h_factor")));
  CIRCLE_TRY_TO(
      w, window_size(in, x[2], f[2], in.int_attr("stride_w"), in.int_attr("dilation_w_factor")));
  return in.give(in.type(0).element(), Dims{x[0], h, w, f[3]});
}

Status infer_conv_3d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 5));
  CIRCLE_TRY(in.need_rank(1, 5));
  const auto x = in.type(0).shape(), f = in.type(1).shape(); // filter [D, H, W, in, out]
  CIRCLE_TRY(check_bias(in, 2, f[4]));
  CIRCLE_TRY_TO(
      d, window_size(in, x[1], f[0], in.int_attr("stride_d"), in.int_attr("dilation_d_factor")));
  CIRCLE_TRY_TO(
      h, window_size(in, x[2], f[1], in.int_attr("stride_h"), in.int_attr("dilation_h_factor")));
  CIRCLE_TRY_TO(
      w, window_size(in, x[3], f[2], in.int_attr("stride_w"), in.int_attr("dilation_w_factor")));
  return in.give(in.type(0).element(), Dims{x[0], d, h, w, f[4]});
}

Status infer_transpose_conv(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto shape = integer_values(op.arg(0), graph);
  if (!shape)
    return in.unknown("the output shape is a run-time value");
  if (static_cast<int>(shape->size()) != in.type(2).rank())
    return in.bad("the output shape has the operand's rank");
  return in.give(in.type(2).element(), *shape);
}

Status infer_pool_2d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 4));
  const auto x = in.type(0).shape();
  CIRCLE_TRY_TO(h, window_size(in, x[1], in.int_attr("filter_height"), in.int_attr("stride_h"), 1));
  CIRCLE_TRY_TO(w, window_size(in, x[2], in.int_attr("filter_width"), in.int_attr("stride_w"), 1));
  return in.give(in.type(0).element(), Dims{x[0], h, w, x[3]});
}

Status infer_resize(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 4));
  const auto size = integer_values(op.arg(1), graph);
  if (!size)
    return in.unknown("the size is a run-time value");
  if (size->size() != 2)
    return in.bad("the size is height and width");
  const auto x = in.type(0).shape();
  return in.give(in.type(0).element(), Dims{x[0], (*size)[0], (*size)[1], x[3]});
}

Status infer_reduce(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto axes = integer_values(op.arg(1), graph);
  if (!axes)
    return in.unknown("the axes are run-time values");
  const int rank = in.type(0).rank();
  std::vector<bool> gone(static_cast<size_t>(rank), false);
  for (SymInt a : *axes) {
    if (a.is_symbolic())
      return in.bad("axes are literals");
    CIRCLE_TRY_TO(axis, in.axis(a.value(), rank));
    if (rank > 0)
      gone[static_cast<size_t>(axis)] = true;
  }
  Dims shape;
  for (int i = 0; i < rank; ++i) {
    if (!gone[static_cast<size_t>(i)])
      shape.push_back(in.type(0).dim(i));
    else if (in.bool_attr("keep_dims"))
      shape.push_back(SymInt(1));
  }
  return in.give(in.type(0).element(), shape);
}

Status infer_arg(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto value = integer_value(op.arg(1), graph);
  if (!value || value->is_symbolic())
    return in.unknown("the axis is a run-time value");
  CIRCLE_TRY(in.need_min_rank(0, 1));
  CIRCLE_TRY_TO(axis, in.axis(value->value(), in.type(0).rank()));
  Dims shape = to_dims(in.type(0).shape());
  shape.erase(shape.begin() + axis);
  return in.give(op.attr("output_type").as_element(), shape);
}

Status infer_topk(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_min_rank(0, 1));
  const auto k = integer_value(op.arg(1), graph);
  if (!k)
    return in.unknown("k is a run-time value");
  Dims shape = to_dims(in.type(0).shape());
  if (k->is_static() && shape.back().is_static() &&
      (k->value() < 0 || k->value() > shape.back().value()))
    return in.bad("k is more than the last dimension");
  shape.back() = *k;
  CIRCLE_TRY(in.moved(0, shape));
  return in.give(ElementType::I32, shape);
}

} // namespace chute::circle

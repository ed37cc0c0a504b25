// Gathers, scatters, blocks, and operators that make a tensor from sizes.
#include "circle/infer_support.h"

#include <cmath>

namespace chute::circle {

using ir::ElementType;
using ir::SymInt;

Status infer_gather(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_min_rank(0, 1));
  const ir::Type x = in.type(0), indices = in.type(1);
  CIRCLE_TRY_TO(axis, in.axis(in.int_attr("axis"), x.rank()));
  i64 batch = in.int_attr("batch_dims");
  if (batch < 0)
    batch += indices.rank();
  if (batch < 0 || batch > axis || batch > indices.rank())
    return in.bad("batch_dims is not between 0 and the axis");
  Dims shape(x.shape().begin(), x.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin() + batch, indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  return in.moved(0, shape);
}

Status infer_gather_nd(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_min_rank(1, 1));
  const ir::Type x = in.type(0), indices = in.type(1);
  const SymInt depth = indices.dim(indices.rank() - 1);
  if (depth.is_symbolic() || depth.value() > x.rank())
    return in.bad("the last dimension of the indices is a literal of at most the operand's rank");
  Dims shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + depth.value(), x.shape().end());
  return in.moved(0, shape);
}

Status infer_scatter_nd(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto shape = integer_values(op.arg(2), graph);
  if (!shape)
    return in.unknown("the shape is a run-time value");
  return in.moved(1, *shape);
}

Status infer_sparse_to_dense(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto shape = integer_values(op.arg(1), graph);
  if (!shape)
    return in.unknown("the shape is a run-time value");
  return in.moved(2, *shape);
}

Status infer_unsorted_segment(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto n = integer_value(op.arg(2), graph);
  if (!n)
    return in.unknown("num_segments is a run-time value");
  const int ids = in.type(1).rank();
  CIRCLE_TRY(in.need_min_rank(0, ids));
  Dims shape{*n};
  shape.insert(shape.end(), in.type(0).shape().begin() + ids, in.type(0).shape().end());
  return in.give(in.type(0).element(), shape);
}

Status infer_embedding_lookup(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 1));
  CIRCLE_TRY(in.need_min_rank(1, 1));
  Dims shape = to_dims(in.type(1).shape());
  shape[0] = in.type(0).dim(0);
  return in.moved(1, shape);
}

Status infer_space_to_depth(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 4));
  const i64 b = in.int_attr("block_size");
  const auto x = in.type(0).shape();
  if (b <= 0 || b > (1 << 15))
    return in.bad("block_size is positive");
  for (size_t i : {1, 2})
    if (x[i].is_static() && x[i].value() % b != 0)
      return in.bad("height and width are multiples of block_size");
  ir::SymTable &sym = in.sym();
  return in.moved(0,
                  Dims{x[0], sym.floordiv(x[1], b), sym.floordiv(x[2], b), sym.mul(x[3], b * b)});
}

Status infer_depth_to_space(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 4));
  const i64 b = in.int_attr("block_size");
  const auto x = in.type(0).shape();
  if (b <= 0 || b > (1 << 15) || (x[3].is_static() && x[3].value() % (b * b) != 0))
    return in.bad("channels are a multiple of block_size squared");
  ir::SymTable &sym = in.sym();
  return in.moved(0, Dims{x[0], sym.mul(x[1], b), sym.mul(x[2], b), sym.floordiv(x[3], b * b)});
}

namespace {

/// Blocks move between the batch and the spatial dimensions. `to_batch`: pad, then divide.
Status infer_blocks(const Inference &in, bool to_batch) {
  const auto block = integer_values(in.op.arg(1), in.graph);
  const auto pads = integer_values(in.op.arg(2), in.graph);
  if (!block || !pads)
    return in.unknown("block shape or paddings are run-time values");
  const size_t m = block->size();
  const auto x = in.type(0).shape();
  if (x.size() < m + 1 || pads->size() != 2 * m)
    return in.bad("block shape [m] and paddings [m, 2] need a rank above m");
  ir::SymTable &sym = in.sym();
  Dims shape = to_dims(x);
  for (size_t i = 0; i < m; ++i) {
    const SymInt b = (*block)[i];
    if (b.is_symbolic() || b.value() <= 0)
      return in.bad("blocks are positive");
    const SymInt border = sym.add((*pads)[2 * i], (*pads)[2 * i + 1]);
    SymInt &d = shape[i + 1];
    const SymInt divided = to_batch ? sym.add(d, border) : shape[0];
    if (divided.is_static() && divided.value() % b.value() != 0)
      return in.bad("not a multiple of the block");
    if (to_batch) {
      d = sym.floordiv(divided, b);
      shape[0] = sym.mul(shape[0], b);
    } else {
      d = sym.sub(sym.mul(d, b), border);
      shape[0] = sym.floordiv(divided, b);
      if (d.is_static() && d.value() < 0)
        return in.bad("the crops remove more than there is");
    }
  }
  return in.moved(0, shape);
}

} // namespace

Status infer_space_to_batch(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return infer_blocks(Inference{op, graph, out}, true);
}

Status infer_batch_to_space(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return infer_blocks(Inference{op, graph, out}, false);
}

Status infer_matrix_diag(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_min_rank(0, 1));
  Dims shape = to_dims(in.type(0).shape());
  shape.push_back(shape.back());
  return in.moved(0, shape);
}

Status infer_dilate(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto dilations = integer_values(op.arg(1), graph);
  if (!dilations)
    return in.unknown("the dilations are run-time values");
  const auto x = in.type(0).shape();
  if (dilations->size() != x.size())
    return in.bad("the dilations have one entry per dimension");
  Dims shape;
  for (size_t i = 0; i < x.size(); ++i)
    shape.push_back(in.sym().add(in.sym().mul(in.sym().sub(x[i], 1), (*dilations)[i]), 1));
  return in.moved(0, shape);
}

Status infer_fill(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto shape = integer_values(op.arg(0), graph);
  if (!shape)
    return in.unknown("the shape is a run-time value");
  return in.moved(1, *shape);
}

Status infer_range(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const ElementType element = in.type(0).element();
  if (ir::is_integer(element)) {
    const auto start = integer_value(op.arg(0), graph), limit = integer_value(op.arg(1), graph),
               delta = integer_value(op.arg(2), graph);
    if (!start || !limit || !delta || delta->is_symbolic())
      return in.unknown("the bounds are run-time values");
    const i64 step = delta->value();
    if (step == 0 || step == std::numeric_limits<i64>::min())
      return in.bad("delta is not zero");
    const SymInt span = step > 0 ? in.sym().sub(*limit, *start) : in.sym().sub(*start, *limit);
    SymInt n = in.sym().ceildiv(span, step > 0 ? step : -step);
    if (n.is_static() && n.value() < 0)
      n = 0;
    return in.give(element, Dims{n});
  }
  const auto start = scalar_value(op.arg(0)), limit = scalar_value(op.arg(1)),
             delta = scalar_value(op.arg(2));
  if (!start || !limit || !delta)
    return in.unknown("the bounds are run-time values");
  const double n = std::ceil((*limit - *start) / *delta);
  if (!(n < 2147483648.0))
    return in.bad("the range is endless");
  return in.give(element, Dims{SymInt(n > 0 ? static_cast<i64>(n) : 0)});
}

Status infer_shape(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const ElementType element = op.attr("out_type").as_element();
  // The field's wire default is FLOAT32, which no writer means.
  return in.give(element == ElementType::I64 ? ElementType::I64 : ElementType::I32,
                 Dims{SymInt(in.type(0).rank())});
}

Status infer_rank(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return Inference{op, graph, out}.give(ElementType::I32, Dims{});
}

Status infer_broadcast_args(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_rank(0, 1));
  CIRCLE_TRY(in.need_rank(1, 1));
  return in.give(in.type(0).element(), Dims{in.sym().max(in.type(0).dim(0), in.type(1).dim(0))});
}

Status infer_one_hot(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto depth = integer_value(op.arg(1), graph);
  if (!depth)
    return in.unknown("the depth is a run-time value");
  CIRCLE_TRY_TO(axis, in.axis(in.int_attr("axis"), in.type(0).rank() + 1));
  Dims shape = to_dims(in.type(0).shape());
  shape.insert(shape.begin() + axis, *depth);
  return in.give(in.type(2).element(), shape);
}

} // namespace chute::circle

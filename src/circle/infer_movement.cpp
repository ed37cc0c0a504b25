// Operators that rearrange elements: views, slices, joins and splits, padding.
#include "circle/infer_support.h"

#include <algorithm>

namespace chute::circle {

using ir::SymInt;

namespace {

/// Product of literal and symbolic dimensions.
SymInt product(const Inference &in, std::span<const SymInt> dims) { return in.sym().product(dims); }

} // namespace

Status infer_reshape(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  if (in.has(1) && op.arg(1)->type().is_tensor() && !ir::is_integer(op.arg(1)->type().element()))
    return in.bad("the shape is no tensor of integers");
  Dims shape;
  std::optional<Dims> values = in.has(1) ? integer_values(op.arg(1), graph) : std::nullopt;
  if (values)
    shape = *values;
  else if (!in.has(1) || !op.attr("new_shape").as_ints().empty())
    shape = to_dims(op.attr("new_shape").as_ints());
  else
    return in.unknown("the shape is a run-time value");
  int free = -1;
  Dims known;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == SymInt(-1)) {
      if (free >= 0)
        return in.bad("the shape has two free dimensions");
      free = static_cast<int>(i);
    } else if (shape[i].is_static() && shape[i].value() < 0) {
      return in.bad("the shape has a negative dimension");
    } else {
      known.push_back(shape[i]);
    }
  }
  const SymInt total = product(in, in.type(0).shape());
  const SymInt given = product(in, span_of(known));
  if (free < 0) {
    if (total.is_static() && given.is_static() && total != given)
      return in.bad("cannot view " + to_string(in.type(0).shape(), in.sym()) + " as " +
                    to_string(span_of(shape), in.sym()));
    return in.moved(0, shape);
  }
  if (given == SymInt(0))
    return in.bad("a free dimension beside one of size 0");
  if (const auto rest = in.sym().exact_div(total, given))
    shape[static_cast<size_t>(free)] = *rest;
  else if (total.is_static() && given.is_static())
    return in.bad("cannot view " + to_string(in.type(0).shape(), in.sym()) + " as " +
                  to_string(span_of(shape), in.sym()));
  else
    shape[static_cast<size_t>(free)] = in.sym().floordiv(total, given);
  return in.moved(0, shape);
}

Status infer_squeeze(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const int rank = in.type(0).rank();
  const auto given = op.attr("squeeze_dims").as_ints();
  std::vector<bool> drop(static_cast<size_t>(rank), false);
  for (SymInt d : given) {
    CIRCLE_TRY_TO(axis, in.axis(d.value(), rank));
    if (rank == 0)
      return in.bad("nothing to squeeze");
    const SymInt size = in.type(0).dim(axis);
    if (size.is_static() && size.value() != 1)
      return in.bad("dimension " + std::to_string(axis) + " is not of size 1");
    drop[static_cast<size_t>(axis)] = true;
  }
  Dims shape;
  for (int i = 0; i < rank; ++i)
    if (given.empty() ? in.type(0).dim(i) != SymInt(1) : !drop[static_cast<size_t>(i)])
      shape.push_back(in.type(0).dim(i));
  return in.moved(0, shape);
}

Status infer_expand_dims(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto value = integer_value(op.arg(1), graph);
  if (!value || value->is_symbolic())
    return in.unknown("the axis is a run-time value");
  CIRCLE_TRY_TO(axis, in.axis(value->value(), in.type(0).rank() + 1));
  Dims shape = to_dims(in.type(0).shape());
  shape.insert(shape.begin() + axis, SymInt(1));
  return in.moved(0, shape);
}

Status infer_transpose(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto perm = integer_values(op.arg(1), graph);
  if (!perm)
    return in.unknown("the permutation is a run-time value");
  const ir::Type x = in.type(0);
  if (static_cast<int>(perm->size()) != x.rank())
    return in.bad("the permutation has " + std::to_string(perm->size()) + " entries for rank " +
                  std::to_string(x.rank()));
  Dims shape;
  std::vector<bool> seen(perm->size(), false);
  const ir::Quantization *quant = x.quant();
  std::optional<ir::Quantization> turned;
  for (size_t i = 0; i < perm->size(); ++i) {
    if ((*perm)[i].is_symbolic())
      return in.bad("not a permutation");
    CIRCLE_TRY_TO(axis, in.axis((*perm)[i].value(), x.rank()));
    if (seen[static_cast<size_t>(axis)])
      return in.bad("not a permutation: axis " + std::to_string(axis) + " occurs twice");
    seen[static_cast<size_t>(axis)] = true;
    shape.push_back(x.dim(axis));
    if (quant && quant->kind != ir::QuantKind::PerTensor && quant->axis == axis) {
      turned = *quant;
      turned->axis = static_cast<i32>(i);
    }
  }
  // The channels move with their axis.
  if (turned)
    quant = in.ctx().quantization(*turned);
  return in.give(x.element(), shape, quant);
}

Status infer_concatenation(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  if (op.num_operands() == 0)
    return in.bad("needs an operand");
  const ir::Type first = op.operand(0)->type();
  CIRCLE_TRY_TO(axis, in.axis(in.int_attr("axis"), first.rank()));
  if (first.rank() == 0)
    return in.bad("cannot join scalars");
  Dims shape = to_dims(first.shape());
  const ir::Quantization *quant = first.quant();
  for (u32 i = 1; i < op.num_operands(); ++i) {
    const ir::Type t = op.operand(i)->type();
    if (t.rank() != first.rank() || t.element() != first.element())
      return in.bad("operand " + std::to_string(i) + " has another rank or element type");
    if (t.quant() != quant)
      quant = nullptr;
    for (int d = 0; d < t.rank(); ++d) {
      SymInt &mine = shape[static_cast<size_t>(d)];
      const SymInt theirs = t.dim(d);
      if (d == axis)
        mine = in.sym().add(mine, theirs);
      else if (mine.is_static() && theirs.is_static() && mine != theirs)
        return in.bad("operand " + std::to_string(i) + " has shape " +
                      to_string(t.shape(), in.sym()) + ", which does not join " +
                      to_string(first.shape(), in.sym()) + " along axis " + std::to_string(axis));
      else if (mine.is_symbolic())
        mine = theirs;
    }
  }
  return in.give(first.element(), shape,
                 quant && quant->kind == ir::QuantKind::PerTensor ? quant : nullptr);
}

Status infer_pack(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  if (op.num_operands() == 0)
    return in.bad("needs an operand");
  const ir::Type first = op.operand(0)->type();
  for (u32 i = 1; i < op.num_operands(); ++i)
    if (op.operand(i)->type().element() != first.element() ||
        op.operand(i)->type().rank() != first.rank())
      return in.bad("operand " + std::to_string(i) + " has another rank or element type");
  if (in.int_attr("values_count") != static_cast<i64>(op.num_operands()))
    return in.bad("values_count is not the number of operands");
  CIRCLE_TRY_TO(axis, in.axis(in.int_attr("axis"), first.rank() + 1));
  Dims shape = to_dims(first.shape());
  shape.insert(shape.begin() + axis, SymInt(static_cast<i64>(op.num_operands())));
  const ir::Quantization *quant = first.quant();
  return in.give(first.element(), shape,
                 quant && quant->kind == ir::QuantKind::PerTensor ? quant : nullptr);
}

Status infer_unpack(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(in.need_min_rank(0, 1));
  CIRCLE_TRY_TO(axis, in.axis(in.int_attr("axis"), in.type(0).rank()));
  const SymInt size = in.type(0).dim(axis);
  const i64 num = in.int_attr("num");
  if (num < 0 || num > (1 << 24) || (size.is_static() && size.value() != num))
    return in.bad("num is not the size of axis " + std::to_string(axis));
  Dims shape = to_dims(in.type(0).shape());
  shape.erase(shape.begin() + axis);
  for (i64 i = 0; i < num; ++i)
    CIRCLE_TRY(in.moved(0, shape));
  return {};
}

Status infer_split(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto value = integer_value(op.arg(0), graph);
  if (!value || value->is_symbolic())
    return in.unknown("the axis is a run-time value");
  CIRCLE_TRY(in.need_min_rank(1, 1));
  CIRCLE_TRY_TO(axis, in.axis(value->value(), in.type(1).rank()));
  const i64 n = in.int_attr("num_splits");
  const SymInt size = in.type(1).dim(axis);
  if (n <= 0 || n > (1 << 24) || (size.is_static() && size.value() % n != 0))
    return in.bad("axis " + std::to_string(axis) + " does not split into " + std::to_string(n) +
                  " equal parts");
  Dims shape = to_dims(in.type(1).shape());
  shape[static_cast<size_t>(axis)] = in.sym().floordiv(size, n);
  for (i64 i = 0; i < n; ++i)
    CIRCLE_TRY(in.moved(1, shape));
  return {};
}

Status infer_split_v(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto sizes = integer_values(op.arg(1), graph);
  const auto value = integer_value(op.arg(2), graph);
  if (!sizes || !value || value->is_symbolic())
    return in.unknown("sizes or axis are run-time values");
  CIRCLE_TRY(in.need_min_rank(0, 1));
  CIRCLE_TRY_TO(axis, in.axis(value->value(), in.type(0).rank()));
  if (in.int_attr("num_splits") != static_cast<i64>(sizes->size()))
    return in.bad("num_splits is not the number of sizes");
  const SymInt size = in.type(0).dim(axis);
  SymInt sum = 0;
  int free = -1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] == SymInt(-1)) {
      if (free >= 0)
        return in.bad("two sizes are free");
      free = static_cast<int>(i);
    } else {
      sum = in.sym().add(sum, (*sizes)[i]);
    }
  }
  if (free < 0 && sum.is_static() && size.is_static() && sum != size)
    return in.bad("the sizes sum to " + std::to_string(sum.value()) + ", not " +
                  std::to_string(size.value()));
  for (size_t i = 0; i < sizes->size(); ++i) {
    Dims shape = to_dims(in.type(0).shape());
    shape[static_cast<size_t>(axis)] =
        static_cast<int>(i) == free ? in.sym().sub(size, sum) : (*sizes)[i];
    CIRCLE_TRY(in.moved(0, shape));
  }
  return {};
}

Status infer_slice(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto size = integer_values(op.arg(2), graph);
  const auto begin = integer_values(op.arg(1), graph);
  const int rank = in.type(0).rank();
  if (!size || !begin)
    return in.unknown("begin or size are run-time values");
  if (static_cast<int>(size->size()) != rank || static_cast<int>(begin->size()) != rank)
    return in.bad("begin and size need one entry per dimension");
  Dims shape;
  for (int i = 0; i < rank; ++i) {
    const SymInt b = (*begin)[static_cast<size_t>(i)], s = (*size)[static_cast<size_t>(i)];
    const SymInt dim = in.type(0).dim(i);
    const SymInt extent = s == SymInt(-1) ? in.sym().sub(dim, b) : s;
    if (b.is_static() && extent.is_static() && dim.is_static() &&
        (b.value() < 0 || extent.value() < 0 || b.value() > dim.value() - extent.value()))
      return in.bad("the slice leaves dimension " + std::to_string(i) + " of size " +
                    std::to_string(dim.value()));
    shape.push_back(extent);
  }
  return in.moved(0, shape);
}

namespace {

/// Number of elements of begin:end:step within a dimension of size `dim`, by the rules of Python.
Result<SymInt> strided_extent(const Inference &in, SymInt dim, std::optional<SymInt> begin,
                              std::optional<SymInt> end, i64 step) {
  ir::SymTable &sym = in.sym();
  if (dim.is_static() && (!begin || begin->is_static()) && (!end || end->is_static())) {
    const i64 n = dim.value();
    const i64 low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto place = [&](i64 v) { return std::clamp(v < 0 ? v + n : v, low, high); };
    const i64 b = begin ? place(begin->value()) : (step > 0 ? 0 : n - 1);
    const i64 e = end ? place(end->value()) : (step > 0 ? n : -1);
    const i64 span = step > 0 ? e - b : b - e;
    const i64 stride = step > 0 ? step : -step;
    return SymInt(span <= 0 ? 0 : (span - 1) / stride + 1);
  }
  if (step < 0) {
    if (!begin && !end)
      return sym.ceildiv(dim, -step);
    return in.unknown("a reversed slice of a symbolic dimension");
  }
  const auto place = [&](SymInt v) { return v.is_static() && v.value() < 0 ? sym.add(dim, v) : v; };
  constexpr i64 kEverything = std::numeric_limits<i32>::max();
  const SymInt b = begin ? place(*begin) : SymInt(0);
  SymInt e = dim;
  if (end && !(end->is_static() && end->value() >= kEverything)) {
    e = place(*end);
    // A literal end is a bound; an expression (a size of this or another tensor) is meant exactly.
    if (end->is_static() && end->value() >= 0)
      e = sym.min(e, dim);
  }
  const SymInt span = sym.sub(e, b);
  return step == 1 ? span : sym.ceildiv(span, step);
}

} // namespace

Status infer_strided_slice(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto begin = integer_values(op.arg(1), graph);
  const auto end = integer_values(op.arg(2), graph);
  const auto strides = integer_values(op.arg(3), graph);
  if (!strides || (!begin && !end))
    return in.unknown("the bounds are run-time values");
  const size_t n = strides->size();
  if ((begin && begin->size() != n) || (end && end->size() != n) || n > 32)
    return in.bad("begin, end and strides have one length");
  const auto mask = [&](std::string_view name, size_t i) {
    return (in.int_attr(name) >> i & 1) != 0;
  };
  size_t consumed = 0; // dimensions that the entries without ellipsis take
  for (size_t i = 0; i < n; ++i)
    consumed += !mask("ellipsis_mask", i) && !mask("new_axis_mask", i);
  const auto rank = static_cast<size_t>(in.type(0).rank());
  if (consumed > rank)
    return in.bad("more slices than dimensions");
  Dims shape;
  size_t d = 0;
  bool ellipsis = false;
  for (size_t i = 0; i < n; ++i) {
    if (mask("ellipsis_mask", i)) {
      if (ellipsis)
        return in.bad("two ellipses");
      ellipsis = true;
      for (size_t k = 0; k < rank - consumed; ++k)
        shape.push_back(in.type(0).shape()[d++]);
      continue;
    }
    if (mask("new_axis_mask", i)) {
      shape.push_back(SymInt(1));
      continue;
    }
    const SymInt dim = in.type(0).shape()[d++];
    if (mask("shrink_axis_mask", i))
      continue;
    if ((*strides)[i].is_symbolic() || (*strides)[i].value() == 0)
      return in.bad("strides are literals other than zero");
    std::optional<SymInt> b, e;
    if (!mask("begin_mask", i)) {
      if (!begin)
        return in.unknown("begin is a run-time value");
      b = (*begin)[i];
    }
    if (!mask("end_mask", i)) {
      if (!end)
        return in.unknown("end is a run-time value");
      e = (*end)[i];
      if (in.bool_attr("offset"))
        e = in.sym().add(*e, b.value_or(SymInt(0)));
    }
    CIRCLE_TRY_TO(extent, strided_extent(in, dim, b, e, (*strides)[i].value()));
    shape.push_back(extent);
  }
  for (; d < rank; ++d)
    shape.push_back(in.type(0).shape()[d]);
  return in.moved(0, shape);
}

Status infer_pad(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto pads = integer_values(op.arg(1), graph);
  if (!pads)
    return in.unknown("the paddings are run-time values");
  const auto rank = static_cast<size_t>(in.type(0).rank());
  if (pads->size() != 2 * rank)
    return in.bad("the paddings are of shape [rank, 2]");
  Dims shape;
  for (size_t i = 0; i < rank; ++i) {
    const SymInt size =
        in.sym().add(in.sym().add(in.type(0).shape()[i], (*pads)[2 * i]), (*pads)[2 * i + 1]);
    if (size.is_static() && size.value() < 0)
      return in.bad("the paddings remove more than there is");
    shape.push_back(size);
  }
  return in.moved(0, shape);
}

Status infer_tile(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto multiples = integer_values(op.arg(1), graph);
  if (!multiples)
    return in.unknown("the multiples are run-time values");
  if (multiples->size() != in.type(0).shape().size())
    return in.bad("the multiples have one entry per dimension");
  Dims shape;
  for (size_t i = 0; i < multiples->size(); ++i)
    shape.push_back(in.sym().mul(in.type(0).shape()[i], (*multiples)[i]));
  return in.moved(0, shape);
}

Status infer_broadcast_to(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto shape = integer_values(op.arg(1), graph);
  if (!shape)
    return in.unknown("the shape is a run-time value");
  CIRCLE_TRY_TO(joined, in.broadcast(in.type(0).shape(), span_of(*shape)));
  if (joined.size() != shape->size())
    return in.bad("the shape has fewer dimensions than the operand");
  for (size_t i = 0; i < joined.size(); ++i)
    if (joined[i].is_static() && (*shape)[i].is_static() && joined[i] != (*shape)[i])
      return in.bad("cannot broadcast " + to_string(in.type(0).shape(), in.sym()) + " to " +
                    to_string(span_of(*shape), in.sym()));
  return in.moved(0, *shape);
}

} // namespace chute::circle

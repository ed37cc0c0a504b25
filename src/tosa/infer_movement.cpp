// Operators that move elements, and those on shapes.
#include "tosa/infer_support.h"
#include "tosa/ops.h"

namespace chute::tosa {

using ir::ElementType;
using ir::SymInt;

namespace {

/// The constant entries of a shape operand, one per dimension of operand 0 times `per`.
Result<std::vector<i64>> shape_list(const Inference &in, u32 operand, int per, i64 low) {
  auto values = constant_ints(in.op.operand(operand));
  if (!values)
    return in.unknown("a shape operand is known only at run time");
  if (per && values->size() != static_cast<size_t>(in.rank() * per))
    return in.bad("operand " + std::to_string(operand) + " has " + std::to_string(values->size()) +
                  " entries, not " + std::to_string(in.rank() * per));
  for (i64 v : *values)
    if (v < low || v > (i64{1} << 40))
      return in.bad("operand " + std::to_string(operand) + " has an entry that is out of range");
  return *values;
}

} // namespace

Status infer_concat(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(std::max<u32>(1, op.num_operands())));
  TOSA_TRY_TO(axis, in.axis());
  Inference::Dims shape = in.dims();
  for (u32 i = 1; i < op.num_operands(); ++i) {
    if (in.element(i) != in.element() || in.rank(i) != in.rank())
      return in.bad("operands differ in element type or rank");
    const Inference::Dims piece = in.dims(i);
    for (size_t d = 0; d < shape.size(); ++d)
      if (d == axis)
        shape[d] = in.sym().add(shape[d], piece[d]);
      else if (shape[d].is_static() && piece[d].is_static() && shape[d] != piece[d])
        return in.bad("operands differ in dimension " + std::to_string(d));
  }
  return in.moved(shape);
}

Status infer_pad(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(pads, shape_list(in, 1, 2, 0));
  Inference::Dims shape = in.dims();
  for (size_t d = 0; d < shape.size(); ++d)
    shape[d] = in.sym().add(shape[d], pads[2 * d] + pads[2 * d + 1]);
  return in.moved(shape);
}

Status infer_reshape(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(target, shape_list(in, 1, 0, -1));
  Inference::Dims shape(target.begin(), target.end());
  Inference::Dims known;
  size_t unknown = shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != SymInt(-1))
      known.push_back(shape[d]);
    else if (unknown != shape.size())
      return in.bad("two dimensions are -1");
    else
      unknown = d;
  const Inference::Dims from = in.dims();
  const SymInt have = in.sym().product(from), want = in.sym().product(known);
  if (unknown != shape.size()) {
    const auto rest = want == SymInt(0) ? std::nullopt : in.sym().exact_div(have, want);
    if (!rest)
      return in.bad("the elements do not divide into the shape");
    shape[unknown] = *rest;
  } else if (have.is_static() && want.is_static() && have != want) {
    return in.bad("has " + std::to_string(have.value()) + " elements and a shape of " +
                  std::to_string(want.value()));
  }
  return in.moved(shape);
}

Status infer_slice(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(start, shape_list(in, 1, 1, 0));
  TOSA_TRY_TO(size, shape_list(in, 2, 1, -1));
  Inference::Dims shape = in.dims();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].is_static() && start[d] + std::max<i64>(size[d], 0) > shape[d].value())
      return in.bad("the slice ends behind dimension " + std::to_string(d));
    shape[d] = size[d] >= 0 ? SymInt(size[d]) : in.sym().sub(shape[d], start[d]);
  }
  return in.moved(shape);
}

Status infer_tile(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(times, shape_list(in, 1, 1, 0));
  Inference::Dims shape = in.dims();
  for (size_t d = 0; d < shape.size(); ++d)
    shape[d] = in.sym().mul(shape[d], times[d]);
  return in.moved(shape);
}

Status infer_transpose(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(perms, in.list("perms", static_cast<size_t>(in.rank()), 0));
  Inference::Dims shape;
  std::vector<bool> seen(perms.size(), false);
  const ir::Quantization *quant = in.type(0).quant();
  for (size_t i = 0; i < perms.size(); ++i) {
    const auto p = static_cast<size_t>(perms[i]);
    if (p >= perms.size() || seen[p])
      return in.bad("perms is no permutation");
    seen[p] = true;
    shape.push_back(in.type(0).dim(static_cast<int>(p)));
  }
  if (quant && quant->kind != ir::QuantKind::PerTensor) {
    ir::Quantization q = *quant;
    for (size_t i = 0; i < perms.size(); ++i)
      if (perms[i] == quant->axis)
        q.axis = static_cast<i32>(i);
    quant = in.ctx().quantization(q);
  }
  return in.give(in.element(), shape, quant);
}

Status infer_gather(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(2, 3));
  if (in.rank(1) != 2)
    return in.bad("the indices have rank 2");
  return in.moved(Inference::Dims{in.type(0).dim(0), in.type(1).dim(1), in.type(0).dim(2)});
}

Status infer_dim(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY(in.axis());
  return in.give(ElementType::I64, Inference::Dims{1});
}

Status infer_concat_shape(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(op.num_operands()));
  SymInt n = 0;
  for (u32 i = 0; i < op.num_operands(); ++i)
    n = in.sym().add(n, in.rank(i) == 1 ? in.type(i).dim(0) : SymInt(1));
  return in.give(ElementType::I64, Inference::Dims{n});
}

} // namespace chute::tosa

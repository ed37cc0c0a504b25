// Parameters and stored constants that follow the movement of elements.
#include "circle/legalize/emit.h"
#include "circle/passes/match.h"
#include "circle/passes/rules/slices.h"
#include "circle/quantize/roles.h"

namespace chute::circle {

namespace {

bool is_reshape(OpCode c) { return c == op::RESHAPE || c == op::SQUEEZE || c == op::EXPAND_DIMS; }

/// The dimension of `to` that holds exactly the elements of dimension `axis` of `from`; -1 when
/// reshaping splits or merges it.
int same_dimension(std::span<const SymInt> from, std::span<const SymInt> to, int axis) {
  const auto product = [](std::span<const SymInt> shape) {
    i64 n = 1;
    for (SymInt d : shape) {
      if (d.is_symbolic())
        return i64{-1};
      n *= d.value();
    }
    return n;
  };
  const i64 before = product(from.first(static_cast<size_t>(axis)));
  const i64 after = product(from.subspan(static_cast<size_t>(axis) + 1));
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] == from[static_cast<size_t>(axis)] && before >= 0 && after >= 0 &&
        product(to.first(i)) == before && product(to.subspan(i + 1)) == after)
      return static_cast<int>(i);
  return -1;
}

/// A slice that keeps the rank and whose bounds are all known.
Cut known_cut(const ir::Op &op) {
  Cut cut = op.opcode() == op::SLICE || op.opcode() == op::STRIDED_SLICE ? cut_of(op) : Cut{};
  if (cut && (!cut.is_static || !cut.same_rank))
    cut.source = nullptr;
  return cut;
}

/// The dimension that a SPLIT cuts; -1 when it is not known.
i64 split_axis(const ir::Op &op) {
  const std::optional<Dims> axis = int_constant(op.operand(0));
  if (!axis || axis->size() != 1)
    return -1;
  return (*axis)[0] < 0 ? (*axis)[0] + op.operand(1)->type().rank() : (*axis)[0];
}

const ir::Quantization *sliced_quantization(ir::Context &ctx, const Cut &cut,
                                            const ir::Quantization &q) {
  const auto axis = static_cast<size_t>(q.axis);
  if (cut.whole[axis])
    return &q;
  std::vector<float> scales;
  std::vector<i64> zero_points;
  for (i64 i = 0; i < cut.size[axis]; ++i) {
    const auto from = static_cast<size_t>(cut.begin[axis] + i * cut.step[axis]);
    if (from >= q.scales.size())
      return nullptr;
    scales.push_back(q.scales[from]);
    zero_points.push_back(q.zero_points[from]);
  }
  ir::Quantization out = q;
  out.scales = scales;
  out.zero_points = zero_points;
  return scales.empty() ? nullptr : ctx.quantization(out);
}

} // namespace

const ir::Quantization *moved_quantization(ir::Context &ctx, const ir::Op &op, u32 operand,
                                           const ir::Quantization *q) {
  if (q->kind == ir::QuantKind::PerTensor)
    return q;
  if (q->kind == ir::QuantKind::MX && op.opcode() != op::TRANSPOSE)
    return nullptr; // blocks of a line that is cut or joined are others
  if (q->kind == ir::QuantKind::Block)
    return nullptr;
  if (const Cut cut = known_cut(op))
    return sliced_quantization(ctx, cut, *q);
  if (op.opcode() == op::SPLIT)
    return split_axis(op) >= 0 && split_axis(op) != q->axis ? q : nullptr;
  int axis = -1;
  if (op.opcode() == op::TRANSPOSE) {
    const Transposed t = transposed(op.result());
    for (size_t i = 0; i < t.perm.size(); ++i)
      if (t.perm[i] == q->axis)
        axis = static_cast<int>(i);
  } else if (is_reshape(op.opcode())) {
    axis =
        same_dimension(op.operand(operand)->type().shape(), op.result()->type().shape(), q->axis);
  }
  if (axis < 0)
    return nullptr;
  ir::Quantization out = *q;
  out.axis = axis;
  return ctx.quantization(out);
}

std::vector<const ir::Constant *> moved_constants(ir::Graph &graph, const ir::Op &op,
                                                  const ir::Constant &c,
                                                  const ir::Quantization *q) {
  std::vector<const ir::Constant *> views;
  for (const Value &r : op.results())
    if (!r.type().has_static_shape())
      return {};
  if (const Cut cut = known_cut(op)) {
    const ir::Constant *view = &c;
    for (size_t d = 0; d < cut.size.size(); ++d) {
      if (cut.whole[d])
        continue;
      if (cut.step[d] < 1)
        return {};
      view = sliced(graph, *view, static_cast<i64>(d), cut.begin[d],
                    cut.begin[d] + cut.size[d] * cut.step[d], cut.step[d]);
    }
    views.push_back(view);
  } else if (const i64 axis = op.opcode() == op::SPLIT ? split_axis(op) : -1; axis >= 0) {
    const i64 size = op.result()->type().dim(static_cast<int>(axis)).value();
    for (i64 i = 0; i < static_cast<i64>(op.num_results()); ++i)
      views.push_back(sliced(graph, c, axis, i * size, (i + 1) * size, 1));
  } else if (const Transposed t = transposed(op.result())) {
    views.push_back(permuted(graph, c, t.perm));
  } else if (is_reshape(op.opcode())) {
    views.push_back(reshaped(graph, c, op.result()->type().shape()));
  }
  // The views above keep the operand's parameters; the results' are those that moved along.
  for (size_t i = 0; i < views.size(); ++i) {
    const ir::Constant &v = *views[i];
    const Type type = graph.context().tensor_type(
        c.type.element(), op.result(static_cast<u32>(i))->type().shape(), q);
    views[i] = graph.add_constant(type, v.data, v.owner, v.strides, v.has_data);
  }
  return views;
}

} // namespace chute::circle

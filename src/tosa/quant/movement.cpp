// Operators that move elements, or choose among them, work on stored integers as they do on reals:
//
//   TRANSPOSE(dequantize(x))  ->  dequantize(TRANSPOSE(x))
//   quantize(RESHAPE(y))      ->  RESHAPE(quantize(y))
//
// Largest and smallest elements too: a positive scale keeps the order.
#include "aten/quantization.h"
#include "quant/params.h"
#include "tosa/quant/fold.h"

#include <algorithm>

namespace chute::tosa {

namespace {

/// `op` over stored operands in place of its first `n` ones, dequantized as `like` says.
bool on_stored(Emit &e, std::span<Value *const> operands, const ir::Op &like) {
  const std::vector<NamedAttr> attrs = attrs_of(e.op);
  const ir::Type type = e.context().tensor_type(operands[0]->type().element(), e.type().shape());
  ir::Op *moved = e.typed(e.op.opcode(), operands, attrs, std::span(&type, 1));
  return e.finish(dequantized(e, like, moved->result()));
}

/// The constant that TRANSPOSE, RESHAPE or SLICE makes of a constant; null for other operators.
const ir::Constant *moved_constant(ir::Graph &graph, const ir::Op &op, const ir::Constant &c) {
  if (!c.has_data)
    return nullptr;
  if (op.opcode() == op::RESHAPE)
    return reshaped(graph, c, op.result()->type().shape());
  if (op.opcode() == op::TRANSPOSE) {
    Dims perm;
    for (SymInt d : op.attr("perms").as_ints())
      perm.push_back(d.value());
    return permuted(graph, c, perm);
  }
  if (op.opcode() != op::SLICE)
    return nullptr;
  const auto start = int_constant(op.operand(1)), size = int_constant(op.operand(2));
  if (!start || !size)
    return nullptr;
  const ir::Constant *part = &c;
  for (size_t i = 0; i < start->size(); ++i)
    if ((*start)[i] != 0 || part->type.dim(static_cast<int>(i)) != SymInt((*size)[i]))
      part = sliced(graph, *part, static_cast<i64>(i), (*start)[i], (*start)[i] + (*size)[i], 1);
  return part;
}

bool move_one(ir::Op &op, pass::Rewriter &rw) {
  const auto s = stored_of(op.operand(0));
  if (!s)
    return false;
  Emit e(op, rw);
  if (const ir::Constant *c = constant_of(s->value))
    if (const ir::Constant *moved = moved_constant(e.graph(), op, *c))
      return e.finish(dequantized(e, *s->dequantize, e.constant(moved)));
  std::vector<Value *> operands = operands_of(op);
  operands[0] = s->value;
  if (op.opcode() == op::PAD) {
    const auto value = splat_of(op.operand(2));
    if (!value)
      return false;
    const Grid grid{s->scale, s->zero_point, quant::range_of(s->element())->min,
                    quant::range_of(s->element())->max, s->element()};
    operands[2] = e.single(s->element(), static_cast<double>(on_grid(grid, *value)));
  }
  return on_stored(e, operands, *s->dequantize);
}

/// Where the channels of weights are after they moved; nullopt when they are not one axis.
std::optional<int> moved_axis(const ir::Op &op, int axis) {
  if (op.opcode() == op::TRANSPOSE) {
    const auto perm = op.attr("perms").as_ints();
    for (size_t i = 0; i < perm.size(); ++i)
      if (perm[i] == SymInt(axis))
        return static_cast<int>(i);
    return std::nullopt;
  }
  if (op.opcode() != op::RESHAPE)
    return std::nullopt;
  const Dims from = static_dims(op.operand(0)), to = static_dims(op.result());
  const auto at = static_cast<size_t>(axis);
  const i64 before = product(std::span(from).first(at));
  i64 leading = 1;
  for (size_t i = 0; i < to.size(); leading *= to[i++])
    if (leading == before && to[i] == from[at] && from[at] > 1)
      return static_cast<int>(i);
  return std::nullopt;
}

/// Constant weights with a scale per channel.
bool move_channels(ir::Op &op, pass::Rewriter &rw) {
  const auto w = weights_of(op.operand(0));
  if (!w || w->axis < 0)
    return false;
  ir::Op &like = *op.operand(0)->producer();
  const int slot = like.def().attr_index("axis");
  const ir::Constant *c = constant_of(w->value);
  const auto axis = op.opcode() == op::SLICE ? w->axis : moved_axis(op, w->axis);
  if (!axis || slot < 0 || !c)
    return false;
  Emit e(op, rw);
  const ir::Constant *moved = moved_constant(e.graph(), op, *c);
  if (!moved)
    return false;
  Value *real = dequantized(e, like, e.constant(moved));
  e.graph().set_attr(real->producer(), static_cast<u32>(slot), of(static_cast<i64>(*axis)));
  if (op.opcode() == op::SLICE) {
    // Scales and zero points are operands with one element per channel.
    const auto start = int_constant(op.operand(1)), size = int_constant(op.operand(2));
    const auto at = static_cast<size_t>(*axis);
    for (u32 i = 1; i < real->producer()->num_operands(); ++i)
      if (const ir::Constant *all = constant_of(real->producer()->operand(i)))
        e.graph().set_operand(
            real->producer(), i,
            e.constant(sliced(e.graph(), *all, 0, (*start)[at], (*start)[at] + (*size)[at], 1)));
  }
  return e.finish(real);
}

/// Several parts on one grid.
template <u32 first, bool rest>
bool move_several(ir::Op &op, pass::Rewriter &rw) {
  std::vector<Value *> operands = operands_of(op);
  const auto one = stored_of(operands[first]);
  if (!one)
    return false;
  const u32 end = rest ? op.num_operands() : first + 1;
  for (u32 i = first; i < end; ++i) {
    const auto s = stored_of(operands[i]);
    if (!s || !s->same_grid(*one))
      return false;
    operands[i] = s->value;
  }
  Emit e(op, rw);
  return on_stored(e, operands, *one->dequantize);
}

/// SELECT and SCATTER: two real operands.
template <u32 a, u32 b>
bool move_two(ir::Op &op, pass::Rewriter &rw) {
  const auto x = stored_of(op.operand(a)), y = stored_of(op.operand(b));
  if (!x || !y || !x->same_grid(*y))
    return false;
  Emit e(op, rw);
  std::vector<Value *> operands = operands_of(op);
  operands[a] = x->value;
  operands[b] = y->value;
  const std::vector<NamedAttr> attrs = attrs_of(op);
  const ir::Type type = e.context().tensor_type(x->element(), e.type().shape());
  ir::Op *moved = e.typed(op.opcode(), operands, attrs, std::span(&type, 1));
  return e.finish(dequantized(e, *x->dequantize, moved->result()));
}

bool is_movement(ir::OpCode code) {
  return code == op::TRANSPOSE || code == op::RESHAPE || code == op::SLICE || code == op::TILE ||
         code == op::REVERSE || code == op::IDENTITY;
}

/// Whether all that reads `v` rounds it, or moves it on to where it is rounded: reals end here.
bool only_rounded(const Value *v) {
  for (const ir::Use &u : v->uses())
    if (!aten::has_affine_form(u.owner()->opcode()) && !is_movement(u.owner()->opcode()))
      return false;
  return true;
}

/// quantize(TRANSPOSE(y)) when nothing reads the transposed reals as such.
bool quantize_first(ir::Op &op, pass::Rewriter &rw) {
  ir::Op *moved = op.operand(0) ? op.operand(0)->producer() : nullptr;
  if (!moved || !is_movement(moved->opcode()) || !only_rounded(op.operand(0)) ||
      stored_of(moved->operand(0)) || !grid_of(op))
    return false;
  Emit e(op, rw);
  std::vector<Value *> operands = operands_of(op);
  operands[0] = moved->operand(0);
  const std::vector<Attr> attrs(op.attrs().begin(), op.attrs().end());
  const ir::Type type =
      e.context().tensor_type(op.result()->type().element(), moved->operand(0)->type().shape());
  ir::Op *first = e.graph().create(op.opcode(), operands, attrs, std::span(&type, 1), op.loc());
  e.graph().insert_before(*op.parent(), &op, first);
  std::vector<Value *> rest = operands_of(*moved);
  rest[0] = first->result();
  const std::vector<NamedAttr> named = attrs_of(*moved);
  const ir::Type out = op.result()->type();
  return e.finish(e.typed(moved->opcode(), rest, named, std::span(&out, 1))->result());
}

/// The index of the largest stored value is that of the largest real.
bool argmax(ir::Op &op, pass::Rewriter &rw) {
  const auto s = stored_of(op.operand(0));
  if (!s)
    return false;
  rw.graph().set_operand(&op, 0, s->value);
  return true;
}

} // namespace

void add_quantized_movement_rules(pass::PatternSet &set) {
  set.add("move-stored",
          {op::TRANSPOSE, op::RESHAPE, op::SLICE, op::TILE, op::REVERSE, op::IDENTITY, op::PAD,
           op::GATHER, op::REDUCE_MAX, op::REDUCE_MIN, op::MAX_POOL2D},
          move_one);
  set.add("move-channels", {op::TRANSPOSE, op::RESHAPE, op::SLICE}, move_channels);
  set.add("concatenate-stored", {op::CONCAT}, move_several<0, true>);
  set.add("select-stored", {op::SELECT}, move_two<1, 2>);
  set.add("scatter-stored", {op::SCATTER}, move_two<0, 2>);
  set.add("argmax-of-stored", {op::ARGMAX}, argmax);
  pass::Pattern first{"quantize-before-moving", quantize_opcodes(), quantize_first};
  set.add(std::move(first));
}

} // namespace chute::tosa

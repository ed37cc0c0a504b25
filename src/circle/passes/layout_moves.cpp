#include "circle/passes/layout_moves.h"

#include <algorithm>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

bool is_softmax(OpCode c) { return c == op::SOFTMAX || c == op::LOG_SOFTMAX; }
bool is_pad(OpCode c) { return c == op::PAD || c == op::PADV2 || c == op::MIRROR_PAD; }

bool is_rank(const Value *v, int rank) {
  return v && v->type() && v->type().is_tensor() && v->type().rank() == rank;
}

bool has_ints(const Value *v, size_t n) {
  const std::optional<Dims> list = int_constant(v);
  return list && list->size() == n;
}

Value *i32_constant(Op &op, Rewriter &rw, const Value *like, const Dims &values) {
  std::vector<i32> v(values.begin(), values.end());
  const Type type = rw.context().with_element(like->type(), ElementType::I32);
  return rw.before(op).constant(rw.graph().add_copy(type, std::as_bytes(std::span<const i32>(v))));
}

/// `width` numbers per dimension in the operator's order, to the order before the transpose.
Dims per_dimension(const Value *v, const Dims &perm, size_t width) {
  const Dims given = *int_constant(v);
  Dims out(given.size());
  for (size_t i = 0; i < perm.size(); ++i)
    for (size_t k = 0; k < width; ++k)
      out[static_cast<size_t>(perm[i]) * width + k] = given[i * width + k];
  return out;
}

i64 permuted_bits(i64 mask, const Dims &perm) {
  i64 out = 0;
  for (size_t i = 0; i < perm.size(); ++i)
    if (mask >> i & 1)
      out |= i64{1} << perm[i];
  return out;
}

i64 permuted_axis(i64 axis, const Dims &perm) {
  return perm[static_cast<size_t>(axis < 0 ? axis + static_cast<i64>(perm.size()) : axis)];
}

bool slices_plainly(const Op &op) {
  for (const std::string_view mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    if (op.attr(mask).as_int() != SymInt(0))
      return false;
  return true;
}

bool keeps_dims(const Op &op) {
  const int slot = op.def().attr_index("keep_dims");
  return slot >= 0 && op.attr(static_cast<u32>(slot)).as_bool();
}

bool axes_within(const Value *v, int rank) {
  const std::optional<Dims> axes = int_constant(v);
  return axes &&
         std::all_of(axes->begin(), axes->end(), [&](i64 a) { return a >= -rank && a < rank; });
}

} // namespace

bool carries_layout(const Op &op, u32 i) {
  const OpCode c = op.opcode();
  if (c == op::SPLIT)
    return i == 1;
  if (c == op::CONCATENATION)
    return !constant_of(op.operand(i));
  if (op.has(ir::trait::kElementwise))
    return op.operand(i) && !constant_of(op.operand(i)) &&
           !has_elements(op.operand(i)->type().shape(), 1);
  return i == 0;
}

bool can_move(const Op &op) {
  if (op.num_results() == 0 || !op.result()->type() || !op.result()->type().is_tensor())
    return false;
  const OpCode c = op.opcode();
  const int rank = op.result()->type().rank();
  const auto n = static_cast<size_t>(rank);
  if (rank < 2)
    return false;
  for (const Value &r : op.results())
    if (!is_rank(&r, rank))
      return false;
  if (op.has(ir::trait::kElementwise)) {
    for (u32 i = 0; i < op.num_operands(); ++i) {
      const Value *v = op.operand(i);
      if (v && (carries_layout(op, i) ? !is_rank(v, rank) : v->type().rank() > rank))
        return false;
      // Its condition of one dimension chooses rows: no broadcast as elsewhere.
      if (c == op::SELECT && !is_rank(v, rank))
        return false;
    }
    return op.num_results() == 1;
  }
  if (c == op::CONCATENATION) {
    for (const ir::Use &u : op.operand_uses())
      if (!is_rank(u.value(), rank))
        return false;
    return op.num_operands() > 0;
  }
  const u32 data = c == op::SPLIT ? 1 : 0;
  if (op.num_operands() <= data || !is_rank(op.operand(data), rank) ||
      constant_of(op.operand(data)))
    return false;
  if (is_pad(c))
    return has_ints(op.operand(1), 2 * n);
  if (is_softmax(c))
    return true;
  if (c == op::SPLIT)
    return has_ints(op.operand(0), 1) && axes_within(op.operand(0), rank);
  if (c == op::STRIDED_SLICE)
    return slices_plainly(op) && has_ints(op.operand(1), n) && has_ints(op.operand(2), n) &&
           has_ints(op.operand(3), n);
  if (c == op::SLICE)
    return has_ints(op.operand(1), n) && has_ints(op.operand(2), n);
  return op.has(ir::trait::kReduction) && op.num_operands() == 2 && op.num_results() == 1 &&
         keeps_dims(op) && axes_within(op.operand(1), rank);
}

bool can_move(const Op &op, std::span<const i64> perm) {
  return !is_softmax(op.opcode()) || perm.back() == static_cast<i64>(perm.size()) - 1;
}

Value *moved_constant(Rewriter &rw, Op &before, const Value *v, size_t rank,
                      std::span<const i64> inverse) {
  const std::span<const SymInt> given = v->type().shape();
  SymDims shape(rank - given.size(), 1);
  shape.insert(shape.end(), given.begin(), given.end());
  return rw.before(before).constant(
      permuted(rw.graph(), *reshaped(rw.graph(), *constant_of(v), shape), inverse));
}

Op *recreate_moved(Rewriter &rw, Op &op, std::span<Value *const> operands, const Dims &perm) {
  const OpCode c = op.opcode();
  const Dims inv = inverse(perm);
  std::vector<Value *> made;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    Value *v = op.operand(i);
    const bool permutes = op.has(ir::trait::kElementwise) || c == op::CONCATENATION;
    if (carries_layout(op, i))
      v = operands[i];
    else if (v && permutes && constant_of(v) && !has_elements(v->type().shape(), 1))
      v = moved_constant(rw, op, v, perm.size(), inv);
    made.push_back(v);
  }
  if (is_pad(c)) {
    made[1] = i32_constant(op, rw, op.operand(1), per_dimension(op.operand(1), perm, 2));
  } else if (c == op::STRIDED_SLICE || c == op::SLICE) {
    for (u32 i = 1; i < (c == op::SLICE ? 3 : 4); ++i)
      made[i] = i32_constant(op, rw, op.operand(i), per_dimension(op.operand(i), perm, 1));
  } else if (c == op::SPLIT) {
    made[0] = i32_constant(op, rw, op.operand(0),
                           {permuted_axis((*int_constant(op.operand(0)))[0], perm)});
  } else if (op.has(ir::trait::kReduction)) {
    Dims axes = *int_constant(op.operand(1));
    for (i64 &a : axes)
      a = permuted_axis(a, perm) - static_cast<i64>(perm.size()); // as legalization counts them
    std::ranges::sort(axes);
    made[1] = i32_constant(op, rw, op.operand(1), axes);
  }
  std::vector<Type> types;
  for (const Value &v : op.results())
    types.push_back(permuted_type(rw.context(), v.type(), inv));
  Op *moved = recreate(rw, op, made, types);
  const auto set = [&](std::string_view name, i64 value) {
    rw.graph().set_attr(moved, static_cast<u32>(op.def().attr_index(name)), Attr::of_int(value));
  };
  if (c == op::CONCATENATION)
    set("axis", permuted_axis(op.attr("axis").as_int().value(), perm));
  if (c == op::STRIDED_SLICE)
    for (const std::string_view mask : {"begin_mask", "end_mask"})
      set(mask, permuted_bits(op.attr(mask).as_int().value(), perm));
  return moved;
}

void replace_transposed(Op &op, Rewriter &rw, Op *moved, std::span<const i64> perm) {
  std::vector<Value *> results;
  for (Value &v : moved->results())
    results.push_back(make_transpose(rw, op, &v, perm));
  for (u32 i = 0; i < op.num_results(); ++i)
    rw.graph().set_type(results[i], op.result(i)->type());
  rw.replace(op, results);
}

} // namespace chute::circle

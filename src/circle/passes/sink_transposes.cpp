// sink-transposes: moves TRANSPOSE from operands to results, where it meets its inverse.
//
//   relu(transpose(x, p))                        → transpose(relu(x), p)
//   add(transpose(x, p), transpose(y, p))        → transpose(add(x, y), p)
//   mul(transpose(x, p), constant)               → transpose(mul(x, constant permuted), p)
//   concatenation, pad, padv2, reductions, softmax, split, strided_slice: axes and per-dimension
//     operands follow the permutation
//   transpose(transpose(x, p), q)                → transpose(x, p q), or x
//   transpose(constant)                          → a view of the constant
//
// Other operands of an elementwise operator may be constants, values of one element, or values
// whose permutation only moves dimensions of size 1 (a RESHAPE).
//
// Illegal or left alone: operands transposed in different ways; a transpose that another user needs
// as it is (moving it would add one); softmax when the last dimension moves. Ends because every
// step moves a transpose towards the outputs.
#include "circle/passes.h"
#include "circle/passes/layout_moves.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

constexpr int kMostUsersChecked = 16;

bool is_softmax(OpCode c) { return c == op::SOFTMAX || c == op::LOG_SOFTMAX; }
bool is_pad(OpCode c) { return c == op::PAD || c == op::PADV2 || c == op::MIRROR_PAD; }

/// Operators that transposes can move through, as far as the operator's kind tells.
bool may_absorb(const Op &user) {
  const OpCode c = user.opcode();
  return user.has(ir::trait::kElementwise) || c == op::TRANSPOSE || c == op::CONCATENATION ||
         is_pad(c) || user.has(ir::trait::kReduction) || is_softmax(c) || c == op::SPLIT ||
         c == op::STRIDED_SLICE;
}

/// Whether the transpose is gone once it has moved through its users.
bool leaves(const Value *v) {
  int n = 0;
  for (ir::Use *u = v->first_use(); u; u = u->next())
    if (++n > kMostUsersChecked || !may_absorb(*u->owner()))
      return false;
  return true;
}

Transposed sinkable(const Value *v) {
  Transposed t = transposed(v);
  if (t && !leaves(v))
    t.source = nullptr;
  return t;
}

bool merge(Op &op, Rewriter &rw) {
  const Transposed outer = transposed(op.result());
  if (!outer)
    return false;
  if (is_identity(outer.perm)) {
    rw.replace(op, op.operand(0));
    return true;
  }
  if (const ir::Constant *c = constant_of(outer.source)) {
    rw.replace(op, rw.before(op).constant(permuted(rw.graph(), *c, outer.perm)));
    return true;
  }
  const Transposed inner = transposed(outer.source);
  if (!inner)
    return false;
  Dims both;
  for (i64 p : outer.perm)
    both.push_back(inner.perm[static_cast<size_t>(p)]);
  rw.replace(op, is_identity(both) ? inner.source : make_transpose(rw, op, inner.source, both));
  return true;
}

/// An operand of an elementwise operator of rank `rank`, permuted by `inv`; null when that costs.
Value *follow(Op &op, Rewriter &rw, Value *v, size_t rank, std::span<const i64> inv, bool dry) {
  const std::span<const SymInt> given = v->type().shape();
  if (given.size() > rank)
    return nullptr;
  if (has_elements(given, 1))
    return v;
  SymDims shape(rank - given.size(), 1);
  shape.insert(shape.end(), given.begin(), given.end());
  if (constant_of(v))
    return dry ? v : moved_constant(rw, op, v, rank, inv);
  SymDims moved;
  for (i64 p : inv)
    moved.push_back(shape[static_cast<size_t>(p)]);
  if (!moves_only_ones(shape, inv) || count_symbolic(moved) > 1)
    return nullptr;
  return dry ? v : make_reshape(rw, op, v, moved);
}

bool through_elementwise(Op &op, Rewriter &rw) {
  const auto rank = static_cast<size_t>(op.result()->type().rank());
  Transposed first;
  for (const ir::Use &u : op.operand_uses()) {
    Transposed t = sinkable(u.value());
    if (t && t.perm.size() == rank) {
      first = std::move(t);
      break;
    }
  }
  if (!first)
    return false;
  const Dims inv = inverse(first.perm);
  std::vector<Value *> operands;
  for (const bool dry : {true, false}) {
    operands.clear();
    for (const ir::Use &u : op.operand_uses()) {
      Value *v = u.value();
      if (const Transposed t = transposed(v); t && t.perm == first.perm)
        operands.push_back(t.source);
      else if (v)
        operands.push_back(follow(op, rw, v, rank, inv, dry));
      if (!operands.back()) {
        rw.reject("another operand is not transposed the same way");
        return false;
      }
    }
  }
  const Type type = permuted_type(rw.context(), op.result()->type(), inv);
  replace_transposed(op, rw, recreate(rw, op, operands, std::span(&type, 1)), first.perm);
  return true;
}

/// Operators that one operand or several, all transposed alike, give their layout.
bool through_mover(Op &op, Rewriter &rw) {
  if (!can_move(op))
    return false;
  Transposed first;
  std::vector<Value *> operands;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    operands.push_back(nullptr);
    if (!carries_layout(op, i))
      continue;
    const Transposed t = first ? transposed(op.operand(i)) : sinkable(op.operand(i));
    if (!t || (first && t.perm != first.perm))
      return false;
    if (!first)
      first = t;
    operands.back() = t.source;
  }
  if (!first || !can_move(op, first.perm))
    return false;
  replace_transposed(op, rw, recreate_moved(rw, op, operands, first.perm), first.perm);
  return true;
}

bool through_reduction(Op &op, Rewriter &rw) {
  const int keep_slot = op.def().attr_index("keep_dims");
  const Transposed t = sinkable(op.operand(0));
  std::optional<Dims> axes = int_constant(op.operand(1));
  if (!t || !axes)
    return false;
  const bool keep = keep_slot >= 0 && op.attr(static_cast<u32>(keep_slot)).as_bool();
  const auto rank = static_cast<i64>(t.perm.size());
  std::vector<bool> gone(t.perm.size(), false);
  for (i64 &a : *axes) {
    a = t.perm[static_cast<size_t>(a < 0 ? a + rank : a)];
    gone[static_cast<size_t>(a)] = true;
  }
  std::ranges::sort(*axes);
  Dims perm = t.perm;
  if (!keep) {
    // Positions among the dimensions that stay.
    Dims position(t.perm.size(), 0);
    i64 n = 0;
    for (size_t d = 0; d < gone.size(); ++d)
      position[d] = gone[d] ? -1 : n++;
    perm.clear();
    for (i64 p : t.perm)
      if (!gone[static_cast<size_t>(p)])
        perm.push_back(position[static_cast<size_t>(p)]);
  }
  for (i64 &a : *axes)
    a -= rank; // as legalization counts them
  const std::vector<i32> list(axes->begin(), axes->end());
  const Type axes_type = rw.context().with_element(op.operand(1)->type(), ElementType::I32);
  Value *operands[] = {t.source, rw.before(op).constant(rw.graph().add_copy(
                                     axes_type, std::as_bytes(std::span(list))))};
  const Type type = permuted_type(rw.context(), op.result()->type(), inverse(perm));
  Op *moved = recreate(rw, op, operands, std::span(&type, 1));
  if (is_identity(perm))
    rw.replace(op, moved->result());
  else
    replace_transposed(op, rw, moved, perm);
  return true;
}

const pass::PatternSet &patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("merge-transposes", {op::TRANSPOSE}, merge);
    s.add("concatenation-of-transposes", {op::CONCATENATION}, through_mover);
    s.add("pad-of-transpose", {op::PAD, op::PADV2, op::MIRROR_PAD}, through_mover);
    s.add("slice-of-transpose", {op::STRIDED_SLICE}, through_mover);
    s.add("softmax-of-transpose", {op::SOFTMAX, op::LOG_SOFTMAX}, through_mover);
    s.add("split-of-transpose", {op::SPLIT}, through_mover);
    pass::Pattern reduce{"reduction-of-transpose", {}, through_reduction};
    pass::Pattern map{"elementwise-of-transposes", {}, through_elementwise};
    for (const ir::OpDef *def : ir::Registry::global().all()) {
      if (!is_circle(def->opcode))
        continue;
      if (def->has(ir::trait::kReduction))
        reduce.roots.push_back(def->opcode);
      if (def->has(ir::trait::kElementwise))
        map.roots.push_back(def->opcode);
    }
    s.add(std::move(reduce));
    s.add(std::move(map));
    return s;
  }();
  return set;
}

} // namespace

void sink_transposes(pass::PassContext &ctx) { ctx.run(patterns()); }

} // namespace chute::circle

// simplify-views: fewer operators that only rename positions.
//
//   reshape(reshape(x))                          → reshape(x)
//   reshape to the same shape                    → x
//   reshape(constant)                            → a view of the constant
//   reshape(f(reshape(x))) to the shape of x     → f(x), f elementwise over one tensor and scalars
//   transpose that moves only dimensions of size 1 → reshape
//   broadcast_to whose user broadcasts by itself → its operand
//   batch_matmul(x, transpose of the last two)   → batch_matmul with adjoint_rhs (or adjoint_lhs)
//   broadcast_to to the same shape               → its operand
//   broadcast_to(reshape that only adds leading ones) → broadcast_to; elementwise users likewise
//
// A RESHAPE merges only when its own target needs no more than one run-time dimension. Runs after
// sink-transposes, which needs to see transposes as such.
#include "circle/passes.h"
#include "circle/passes/match.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

const Op *reshape_of(const Value *v) {
  const Op *p = v->producer();
  return p && p->opcode() == op::RESHAPE ? p : nullptr;
}

bool simplify_reshape(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  const std::span<const SymInt> shape = op.result()->type().shape();
  if (x->type() == op.result()->type()) {
    rw.replace(op, x);
    return true;
  }
  if (const ir::Constant *c = constant_of(x)) {
    rw.replace(op, rw.before(op).constant(reshaped(rw.graph(), *c, shape)));
    return true;
  }
  const Op *inner = reshape_of(x);
  if (!inner || count_symbolic(shape) > 1)
    return false;
  Value *source = inner->operand(0);
  rw.replace(op,
             source->type() == op.result()->type() ? source : make_reshape(rw, op, source, shape));
  return true;
}

/// The operand of an elementwise operator whose others hold one element each; -1 when there is
/// none.
int lone_tensor(const Op &op) {
  int found = -1;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    const Value *v = op.operand(i);
    if (v && has_elements(v->type().shape(), 1) && constant_of(v))
      continue;
    if (found >= 0 || !v)
      return -1;
    found = static_cast<int>(i);
  }
  return found;
}

bool unwrap_elementwise(Op &op, Rewriter &rw) {
  Op *f = op.operand(0)->producer();
  if (!f || !is_circle(f->opcode()) || !f->has(ir::trait::kElementwise) || f->num_results() != 1 ||
      !f->result()->has_one_use() || f->opcode() == op::PRELU)
    return false;
  const int at = lone_tensor(*f);
  if (at < 0)
    return false;
  const Op *inner = reshape_of(f->operand(static_cast<u32>(at)));
  const std::span<const SymInt> shape = op.result()->type().shape();
  if (!inner || !std::ranges::equal(inner->operand(0)->type().shape(), shape))
    return false;
  std::vector<Value *> operands;
  for (const ir::Use &u : f->operand_uses())
    operands.push_back(u.value());
  // One-element operands of a higher rank would raise the result's.
  for (const Value *v : operands)
    if (v->type().shape().size() > shape.size() && constant_of(v))
      return false;
  operands[static_cast<size_t>(at)] = inner->operand(0);
  const Type type = op.result()->type();
  rw.replace(op, recreate(rw, *f, operands, std::span(&type, 1))->result());
  return true;
}

bool trivial_transpose(Op &op, Rewriter &rw) {
  const Transposed t = transposed(op.result());
  const std::span<const SymInt> shape = op.result()->type().shape();
  if (!t || count_symbolic(shape) > 1 || !moves_only_ones(t.source->type().shape(), t.perm))
    return false;
  rw.replace(op, t.source->type() == op.result()->type() ? t.source
                                                         : make_reshape(rw, op, t.source, shape));
  return true;
}

std::optional<SymDims> broadcast_shape(const Op &op, u32 changed, const Value *with) {
  SymDims out;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    const Value *v = i == changed ? with : op.operand(i);
    if (!v)
      continue;
    const std::span<const SymInt> s = v->type().shape();
    if (s.size() > out.size())
      out.insert(out.begin(), s.size() - out.size(), SymInt(1));
    for (size_t k = 0; k < s.size(); ++k) {
      SymInt &d = out[out.size() - s.size() + k];
      if (d == SymInt(1))
        d = s[k];
      else if (s[k] != SymInt(1) && s[k] != d)
        return {};
    }
  }
  return out;
}

/// Elementwise operators broadcast by themselves.
bool drop_broadcast_operand(Op &op, Rewriter &rw) {
  bool changed = false;
  if (op.opcode() == op::PRELU)
    return false;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    const Value *v = op.operand(i);
    const Op *p = v ? v->producer() : nullptr;
    if (!p || p->opcode() != op::BROADCAST_TO)
      continue;
    const std::optional<SymDims> shape = broadcast_shape(op, i, p->operand(0));
    if (!shape || !std::ranges::equal(*shape, op.result()->type().shape()))
      continue;
    rw.graph().set_operand(&op, i, p->operand(0));
    changed = true;
  }
  return changed;
}

/// `v` without a RESHAPE that only puts ones in front; null when it has none.
Value *without_leading_ones(const Value *v) {
  const Op *p = v ? reshape_of(v) : nullptr;
  if (!p)
    return nullptr;
  const std::span<const SymInt> from = p->operand(0)->type().shape(), to = v->type().shape();
  if (from.size() >= to.size() || !std::ranges::equal(from, to.last(from.size())))
    return nullptr;
  for (SymInt d : to.first(to.size() - from.size()))
    if (d != SymInt(1))
      return nullptr;
  return p->operand(0);
}

bool drop_identity_broadcast(Op &op, Rewriter &rw) {
  if (op.operand(0)->type() == op.result()->type()) {
    rw.replace(op, op.operand(0));
    return true;
  }
  if (Value *x = without_leading_ones(op.operand(0))) {
    rw.graph().set_operand(&op, 0, x);
    return true;
  }
  return false;
}

/// Broadcasting adds leading dimensions by itself.
bool drop_leading_ones(Op &op, Rewriter &rw) {
  bool changed = false;
  if (op.opcode() == op::PRELU || op.num_operands() < 2)
    return false;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    Value *x = without_leading_ones(op.operand(i));
    const std::optional<SymDims> shape = x ? broadcast_shape(op, i, x) : std::nullopt;
    if (!shape || !std::ranges::equal(*shape, op.result()->type().shape()))
      continue;
    rw.graph().set_operand(&op, i, x);
    changed = true;
  }
  return changed;
}

bool fold_into_matmul(Op &op, Rewriter &rw) {
  bool changed = false;
  for (u32 i = 0; i < 2; ++i) {
    const Transposed t = transposed(op.operand(i));
    if (!t)
      continue;
    Dims swapped(t.perm.size());
    for (size_t d = 0; d < swapped.size(); ++d)
      swapped[d] = static_cast<i64>(d);
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    if (t.perm != swapped)
      continue;
    const auto slot = static_cast<u32>(op.def().attr_index(i == 0 ? "adjoint_lhs" : "adjoint_rhs"));
    rw.graph().set_attr(&op, slot, Attr::of_bool(!op.attr(slot).as_bool()));
    rw.graph().set_operand(&op, i, t.source);
    changed = true;
  }
  return changed;
}

const pass::PatternSet &patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("simplify-reshape", {op::RESHAPE}, simplify_reshape);
    s.add("unwrap-elementwise", {op::RESHAPE}, unwrap_elementwise);
    s.add("trivial-transpose", {op::TRANSPOSE}, trivial_transpose);
    s.add("identity-broadcast", {op::BROADCAST_TO}, drop_identity_broadcast);
    s.add("transpose-into-matmul", {op::BATCH_MATMUL}, fold_into_matmul);
    pass::Pattern map{"broadcast-into-elementwise", {}, drop_broadcast_operand};
    pass::Pattern ones{"leading-ones-into-elementwise", {}, drop_leading_ones};
    for (const ir::OpDef *def : ir::Registry::global().all())
      if (is_circle(def->opcode) && def->has(ir::trait::kElementwise))
        map.roots.push_back(def->opcode);
    ones.roots = map.roots;
    s.add(std::move(map));
    s.add(std::move(ones));
    return s;
  }();
  return set;
}

} // namespace

void simplify_views(pass::PassContext &ctx) { ctx.run(patterns()); }

} // namespace chute::circle

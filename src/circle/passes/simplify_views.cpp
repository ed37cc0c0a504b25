// simplify-views: fewer operators that only rename positions.
//
//   reshape(reshape(x))                          → reshape(x)
//   reshape to the same shape                    → x
//   reshape(constant)                            → a view of the constant
//   reshape(f(reshape(x), reshape(y))) to the shape of x and y → f(x, y); to another shape, x and y
//     of one: reshape(f(x, y)). f: up to 32 elementwise operators that nothing else uses, constants
//     and scalars among their operands
//   transpose that moves only dimensions of size 1 → reshape
//   broadcast_to whose user broadcasts by itself → its operand
//   batch_matmul(x, transpose of the last two)   → batch_matmul with adjoint_rhs (or adjoint_lhs)
//   broadcast_to to the same shape               → its operand
//   broadcast_to(reshape that only adds leading ones) → broadcast_to; elementwise users likewise
//
// A RESHAPE merges only when its own target needs no more than one run-time dimension. Runs after
// sink-transposes, which needs to see transposes as such.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

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
  if (!stored_alike(x->type(), op.result()->type())) {
    rw.reject("the result is quantized differently or per channel");
    return false;
  }
  if (const ir::Constant *c = data_of(x)) {
    rw.replace(op, rw.before(op).constant(reshaped(rw.graph(), *c, shape)));
    return true;
  }
  const Op *inner = reshape_of(x);
  if (!inner)
    return false;
  Value *source = inner->operand(0);
  if (!stored_alike(source->type(), op.result()->type())) {
    rw.reject("the value between is quantized differently");
    return false;
  }
  if (source->type() == op.result()->type()) {
    rw.replace(op, source);
    return true;
  }
  // A shape computed at run time hides that a file contradicts itself until the reshape between is
  // gone.
  if (source->type().has_static_shape() && op.result()->type().has_static_shape() &&
      source->type().num_elements() != op.result()->type().num_elements()) {
    rw.reject("the value between has another number of elements");
    return false;
  }
  if (count_symbolic(shape) > 1) {
    rw.reject("two dimensions known only at run time");
    return false;
  }
  rw.replace(op, make_reshape(rw, op, source, shape));
  return true;
}

/// Elementwise operators below a RESHAPE, up to the RESHAPEs that they read: a tree, since each
/// feeds only the next.
class Region {
public:
  Region(Op &root, Type to) : root_(root), to_(to) {}

  /// Whether every leaf has the shape of `to` already, or is a constant.
  bool find() {
    if (!grow(root_.operand(0)))
      return false;
    for (size_t i = 0; i < ops_.size(); ++i) {
      shaped_ = 0;
      for (const ir::Use &u : ops_[i]->operand_uses())
        if (!operand(u.value()))
          return false;
      if (shaped_ == 0)
        return false; // the result would have the rank of its scalars
    }
    return !ops_.empty() && views_ > 0;
  }

  /// Whether a RESHAPE that it reads has no user outside.
  bool frees_a_view() const {
    for (const Op *f : ops_)
      for (const ir::Use &u : f->operand_uses()) {
        const Value *v = u.value();
        bool inside = v && reshape_of(v) != nullptr;
        size_t n = 0;
        for (const ir::Use *w = inside ? v->first_use() : nullptr; inside && w; w = w->next())
          inside = ++n <= kMostOps && std::find(ops_.begin(), ops_.end(), w->owner()) != ops_.end();
        if (inside)
          return true;
      }
    return false;
  }

  Value *rebuild(Rewriter &rw) const {
    boost::unordered_flat_map<const Value *, Value *> made;
    const std::span<const SymInt> shape = to_.shape();
    for (size_t i = ops_.size(); i-- > 0;) {
      Op &f = *ops_[i];
      std::vector<Value *> operands;
      for (const ir::Use &u : f.operand_uses()) {
        Value *v = u.value();
        const ir::Constant *c = data_of(v);
        if (const auto it = made.find(v); it != made.end())
          operands.push_back(it->second);
        else if (c && !is_single(v))
          operands.push_back(rw.before(root_).constant(reshaped(rw.graph(), *c, shape)));
        else if (c || v->type().rank() == 0)
          operands.push_back(v);
        else
          operands.push_back(reshape_of(v)->operand(0));
      }
      const Type type = rw.context().with_shape(f.result()->type(), shape);
      made[f.result()] = recreate(rw, root_, f, operands, std::span(&type, 1))->result();
    }
    return made[root_.operand(0)];
  }

private:
  static constexpr size_t kMostOps = 32;

  static bool is_single(const Value *v) { return has_elements(v->type().shape(), 1); }
  static Op *recreate(Rewriter &rw, Op &at, const Op &op, std::span<Value *const> operands,
                      std::span<const Type> types) {
    const std::vector<Attr> attrs(op.attrs().begin(), op.attrs().end());
    Op *copy = rw.graph().create(op.opcode(), operands, attrs, types, op.loc());
    rw.graph().insert_before(*at.parent(), &at, copy);
    return copy;
  }

  bool grow(Value *v) {
    Op *f = v->producer();
    if (!f || !is_circle(f->opcode()) || !f->has(ir::trait::kElementwise) ||
        f->num_results() != 1 || !v->has_one_use() || f->opcode() == op::PRELU ||
        !is_movable(v->type()) || ops_.size() >= kMostOps ||
        !same_shape(v->type(), root_.operand(0)->type()))
      return false;
    ops_.push_back(f);
    return true;
  }

  bool operand(Value *v) {
    const Type to = to_;
    if (!v || !is_movable(v->type()))
      return false;
    const bool constant = data_of(v) != nullptr;
    // A one-element operand of a higher rank would raise the result's.
    if (is_single(v) && (constant || v->type().rank() == 0))
      return v->type().rank() <= to.rank();
    if (!same_shape(v->type(), root_.operand(0)->type()))
      return false;
    ++shaped_;
    if (constant)
      return true;
    if (const Op *inner = reshape_of(v); inner && same_shape(inner->operand(0)->type(), to) &&
                                         stored_alike(inner->operand(0)->type(), v->type())) {
      ++views_;
      return true;
    }
    return grow(v);
  }

  Op &root_;
  Type to_;
  std::vector<Op *> ops_;
  size_t views_ = 0;
  size_t shaped_ = 0; ///< operands of the operator being looked at that have the region's shape
};

bool unwrap_elementwise(Op &op, Rewriter &rw) {
  const Type out = op.result()->type();
  if (!stored_alike(op.operand(0)->type(), out))
    return false;
  Region region(op, out);
  if (region.find()) {
    rw.replace(op, region.rebuild(rw));
    return true;
  }
  // In the shape that the region reads from: the RESHAPE before it goes, the one behind it stays.
  const Value *v = op.operand(0);
  for (int depth = 0; depth < 32; ++depth) {
    const Op *f = v->producer();
    if (!f || !is_circle(f->opcode()) || f->num_operands() == 0)
      return false;
    if (f->opcode() == op::RESHAPE)
      break;
    if (!f->has(ir::trait::kElementwise))
      return false;
    const Value *next = nullptr;
    for (const ir::Use &u : f->operand_uses())
      if (u.value() && !constant_of(u.value()) && same_shape(u.value()->type(), v->type())) {
        next = u.value();
        break;
      }
    if (!next)
      return false;
    v = next;
  }
  const Op *entry = reshape_of(v);
  if (!entry || v == op.operand(0) || count_symbolic(out.shape()) > 1)
    return false;
  Region inner(op, entry->operand(0)->type());
  if (!inner.find() || !inner.frees_a_view())
    return false;
  rw.replace(op, make_reshape(rw, op, inner.rebuild(rw), out.shape()));
  return true;
}

bool trivial_transpose(Op &op, Rewriter &rw) {
  const Transposed t = transposed(op.result());
  const std::span<const SymInt> shape = op.result()->type().shape();
  if (!t || count_symbolic(shape) > 1 || !moves_only_ones(t.source->type().shape(), t.perm) ||
      !stored_alike(t.source->type(), op.result()->type()) || shape.empty())
    return false;
  rw.replace(op, t.source->type() == op.result()->type() ? t.source
                                                         : make_reshape(rw, op, t.source, shape));
  return true;
}

std::optional<SymDims> broadcast_shape(const Op &op, u32 changed, const Value *with) {
  std::optional<SymDims> out = SymDims{};
  for (u32 i = 0; out && i < op.num_operands(); ++i)
    if (const Value *v = i == changed ? with : op.operand(i))
      out = broadcast(*out, v->type().shape());
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
    if (!p || p->opcode() != op::BROADCAST_TO || !stored_alike(p->operand(0)->type(), v->type()))
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
  if (!p || !stored_alike(p->operand(0)->type(), v->type()))
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
    if (!t || t.perm.size() < 2 || !stored_alike(t.source->type(), op.operand(i)->type()))
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

} // namespace

void add_view_rules(pass::PatternSet &set) {
  set.add("simplify-reshape", {op::RESHAPE}, simplify_reshape);
  set.add("unwrap-elementwise", {op::RESHAPE}, unwrap_elementwise);
  set.add("trivial-transpose", {op::TRANSPOSE}, trivial_transpose);
  set.add("identity-broadcast", {op::BROADCAST_TO}, drop_identity_broadcast);
  set.add("transpose-into-matmul", {op::BATCH_MATMUL}, fold_into_matmul);
  pass::Pattern map{"broadcast-into-elementwise", {}, drop_broadcast_operand};
  pass::Pattern ones{"leading-ones-into-elementwise", {}, drop_leading_ones};
  for (const ir::OpDef *def : ir::Registry::global().all())
    if (is_circle(def->opcode) && def->has(ir::trait::kElementwise))
      map.roots.push_back(def->opcode);
  ones.roots = map.roots;
  set.add(std::move(map));
  set.add(std::move(ones));
}

void simplify_views(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_view_rules(s);
    add_rank_rules(s);
    add_part_view_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

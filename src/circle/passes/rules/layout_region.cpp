// layout-region: operators between transposes and their inverses work in the layout of what is
// transposed, and the transposes go.
//
//   transpose(relu(transpose(x, p)) + transpose(y, p), inverse p) → relu(x) + y
//
// A region grows from the transpose at its end over all operators that a transpose can move through
// (circle/passes/layout_moves.h), up to 64 of them. Every value that enters is transposed by p, a
// constant or of one element; every value that leaves is transposed back. All or nothing: there are
// never more transposes than before. (sink-transposes and assign-layouts, at -O2, also move
// transposes for a part of a region.)
//
// Exact: every element is computed from the same numbers. Left alone: outputs of the program inside
// of the region, per-channel quantization, softmax that would leave the last dimension.
#include "circle/passes/layout_moves.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

constexpr size_t kMostOps = 64;
constexpr size_t kMostUses = 256;

class LayoutRegion {
public:
  LayoutRegion(Op &exit, const Transposed &out)
      : exit_(exit), leave_(out.perm), enter_(inverse(out.perm)) {}

  bool find(const Value *source) {
    if (!add(source->producer()))
      return false;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (!visit_operands(*ops_[i]) || !visit_users(*ops_[i]))
        return false;
    return true;
  }

  void rewrite(Rewriter &rw) {
    for (Op *op : ops_)
      depth_first(rw, *op);
    for (Op *exit : exits_)
      rw.replace(*exit, moved_[exit->operand(0)]);
  }

private:
  bool is_entry(const Value *v) const {
    const Transposed t = transposed(v);
    return t && t.perm == enter_ && stored_alike(t.source->type(), v->type());
  }
  bool is_exit(const Op &op) const {
    const Transposed t = op.opcode() == op::TRANSPOSE ? transposed(op.result()) : Transposed();
    return t && t.perm == leave_ && stored_alike(t.source->type(), op.result()->type());
  }
  bool inside(const Op *op) const { return std::ranges::find(ops_, op) != ops_.end(); }

  bool add(Op *op) {
    if (!op)
      return false;
    if (inside(op))
      return true;
    if (ops_.size() >= kMostOps || !is_circle(op->opcode()) || op->num_regions() ||
        op->parent() != exit_.parent() || !can_move(*op) || !can_move(*op, enter_) ||
        op->result()->type().rank() != static_cast<int>(enter_.size()))
      return false;
    for (const Value &r : op->results())
      if (!is_movable(r.type()))
        return false;
    ops_.push_back(op);
    return true;
  }

  bool visit_operands(Op &op) {
    for (u32 i = 0; i < op.num_operands(); ++i)
      if (carries_layout(op, i) && !is_entry(op.operand(i)) && !add(op.operand(i)->producer()))
        return false;
    return true;
  }

  bool visit_users(Op &op) {
    size_t uses = 0;
    for (const Value &r : op.results())
      for (const ir::Use *u = r.first_use(); u; u = u->next()) {
        Op *user = u->owner();
        if (++uses > kMostUses)
          return false;
        if (is_exit(*user)) {
          if (std::ranges::find(exits_, user) == exits_.end())
            exits_.push_back(user);
        } else if (!add(user) || !carries_layout(*user, u->operand_index())) {
          return false;
        }
      }
    return true;
  }

  /// Operands before users, with a stack of its own.
  void depth_first(Rewriter &rw, Op &start) {
    std::vector<Op *> stack{&start};
    while (!stack.empty()) {
      Op *op = stack.back();
      bool ready = true;
      for (const ir::Use &u : op->operand_uses()) {
        Op *p = u.value() ? u.value()->producer() : nullptr;
        if (p && inside(p) && !moved_.contains(p->result())) {
          stack.push_back(p);
          ready = false;
        }
      }
      if (!ready)
        continue;
      stack.pop_back();
      if (!moved_.contains(op->result()))
        move(rw, *op);
    }
  }

  void move(Rewriter &rw, Op &op) {
    std::vector<Value *> operands;
    for (u32 i = 0; i < op.num_operands(); ++i) {
      Value *v = op.operand(i);
      if (v && carries_layout(op, i))
        v = inside(v->producer()) ? moved_[v] : transposed(v).source;
      operands.push_back(v);
    }
    Op *moved = recreate_moved(rw, op, operands, enter_);
    for (u32 i = 0; i < op.num_results(); ++i)
      moved_[op.result(i)] = moved->result(i);
  }

  Op &exit_;
  const Dims leave_, enter_;
  std::vector<Op *> ops_, exits_;
  boost::unordered_flat_map<const Value *, Value *> moved_;
};

bool layout_region(Op &op, Rewriter &rw) {
  const Transposed out = transposed(op.result());
  if (!out || !stored_alike(out.source->type(), op.result()->type()))
    return false;
  const Op *above = out.source->producer();
  if (!above || above->has(ir::trait::kConstant) || above->opcode() == op::TRANSPOSE)
    return false;
  LayoutRegion region(op, out);
  if (!region.find(out.source))
    return false;
  region.rewrite(rw);
  return true;
}

} // namespace

void add_layout_region_rules(pass::PatternSet &set) {
  set.add("layout-region", {op::TRANSPOSE}, layout_region);
}

} // namespace chute::circle

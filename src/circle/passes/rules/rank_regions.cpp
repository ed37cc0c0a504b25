// rank-round-trip: a RESHAPE that only adds or drops dimensions of size 1 moves up through the
// operators above it, to the RESHAPEs that those read from, and joins them.
//
//   y = reshape(x, [16, 32]); z = transpose(y * 3); reshape(z, [1, 32, 16])
//     → y = reshape(x, [1, 16, 32]); transpose(y * 3, [0, 2, 1])      one RESHAPE less, or two
//
// Moves through elementwise operators, TRANSPOSE, SPLIT, SOFTMAX and reductions that keep their
// dimensions, up to 64 operators that nothing outside of the region reads. Every operand that
// enters is the result of a RESHAPE, a constant, or has one element.
//
// Exact: dimensions of size 1 carry no order. Left alone: a dimension that an operator works on and
// the RESHAPE drops, per-channel quantization, run-time shapes. Each rewrite leaves fewer RESHAPEs.
#include "circle/passes/rules/rules.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

constexpr size_t kMostOps = 64;
constexpr i64 kNew = -1; ///< in a layout: a dimension of size 1 that the value does not have

/// For every dimension of the new shape the dimension of the value that it is, or kNew.
using Layout = Dims;

/// How `to` comes from `from` by adding and dropping ones; nullopt when it does not.
std::optional<Layout> layout_between(Type from, Type to) {
  Layout out;
  int i = 0;
  const SymInt one(1);
  for (int k = 0; k < to.rank(); ++k) {
    if (to.dim(k) == one) {
      if (i < from.rank() && from.dim(i) == one)
        out.push_back(i++);
      else
        out.push_back(kNew);
      continue;
    }
    while (i < from.rank() && from.dim(i) == one)
      ++i;
    if (i == from.rank() || from.dim(i) != to.dim(k))
      return {};
    out.push_back(i++);
  }
  for (; i < from.rank(); ++i)
    if (from.dim(i) != one)
      return {};
  return out;
}

class RankRegion {
public:
  explicit RankRegion(Op &exit) : exit_(exit) {}

  bool find() {
    const Value *y = exit_.operand(0);
    if (!stored_alike(y->type(), exit_.result()->type()) || !y->type().has_static_shape() ||
        !exit_.result()->type().has_static_shape())
      return false;
    const std::optional<Layout> layout = layout_between(y->type(), exit_.result()->type());
    if (!layout || !assign(y, *layout) || ops_.empty())
      return false;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (!visit(*ops_[i]))
        return false;
    return views_ > 0 && is_closed() && order();
  }

  Value *rebuild(Rewriter &rw) {
    for (Op *op : order_)
      rebuild_op(rw, *op);
    return new_values_[exit_.operand(0)];
  }

private:
  static bool is_single(const Value *v) { return has_elements(v->type().shape(), 1); }

  /// What a value of the region looks like from now on; false when it can not.
  bool assign(const Value *v, const Layout &layout) {
    const auto [it, fresh] = layouts_.try_emplace(v, layout);
    if (!fresh)
      return it->second == layout;
    Op *p = v->producer();
    if (!p || !is_movable(v->type()))
      return false;
    if (p->opcode() == op::RESHAPE) {
      if (!stored_alike(p->operand(0)->type(), v->type()))
        return false;
      views_ += 1;
      return true;
    }
    if (p->has(ir::trait::kConstant))
      return data_of(v) != nullptr;
    if (ops_.size() >= kMostOps)
      return false;
    for (const Value &r : p->results())
      if (&r != v && !layouts_.try_emplace(&r, layout).second && layouts_[&r] != layout)
        return false;
    if (std::find(ops_.begin(), ops_.end(), p) == ops_.end())
      ops_.push_back(p);
    return true;
  }

  bool keeps(const Layout &l, i64 dim) const { return std::ranges::find(l, dim) != l.end(); }
  /// As legalization counts axes: onert drops leading dimensions of what FULLY_CONNECTED gives.
  i64 from_the_end(const Layout &l, i64 dim) const { return std::ranges::find(l, dim) - l.end(); }

  bool visit(Op &op) {
    if (op.num_results() == 0 || !is_circle(op.opcode()) || op.num_regions())
      return false;
    for (const Value &r : op.results())
      if (!r.type().has_static_shape() || !is_movable(r.type()))
        return false;
    const Layout layout = layouts_[op.result()];
    const OpCode c = op.opcode();
    if (op.has(ir::trait::kElementwise) && c != op::PRELU)
      return elementwise(op, layout);
    if (c == op::TRANSPOSE)
      return transpose(op, layout);
    if (c == op::SPLIT) {
      const std::optional<Dims> axis = axes(op.operand(0), op.operand(1));
      return axis && keeps(layout, (*axis)[0]) && assign(op.operand(1), layout);
    }
    if (c == op::SOFTMAX || c == op::LOG_SOFTMAX)
      return !layout.empty() && layout.back() == op.result()->type().rank() - 1 &&
             assign(op.operand(0), layout);
    if (op.has(ir::trait::kReduction) && op.attr("keep_dims").kind() == ir::AttrKind::Bool &&
        op.attr("keep_dims").as_bool()) {
      const std::optional<Dims> over = axes(op.operand(1), op.operand(0));
      return over && std::ranges::all_of(*over, [&](i64 a) { return keeps(layout, a); }) &&
             assign(op.operand(0), layout);
    }
    return false;
  }

  /// Constant axes of `of`'s dimensions, none negative.
  static std::optional<Dims> axes(const Value *v, const Value *of) {
    std::optional<Dims> out = small_ints(v);
    if (!out || out->empty())
      return {};
    for (i64 &a : *out) {
      a += a < 0 ? of->type().rank() : 0;
      if (a < 0 || a >= of->type().rank())
        return {};
    }
    return out;
  }

  bool elementwise(Op &op, const Layout &layout) {
    const int rank = op.result()->type().rank();
    if (rank == 0)
      return false;
    for (const ir::Use &u : op.operand_uses()) {
      const Value *v = u.value();
      if (!v || !is_movable(v->type()))
        return false;
      if (data_of(v) || (is_single(v) && v->type().rank() == 0)) {
        if (v->type().rank() > rank)
          return false;
        continue;
      }
      if (v->type().rank() != rank || !assign(v, layout))
        return false;
    }
    return true;
  }

  bool transpose(Op &op, const Layout &layout) {
    const Transposed t = transposed(op.result());
    if (!t || !small_ints(op.operand(1)) || !stored_alike(t.source->type(), op.result()->type()))
      return false;
    Layout below;
    for (i64 d : layout)
      if (d != kNew)
        below.push_back(t.perm[static_cast<size_t>(d)]);
    std::ranges::sort(below);
    for (size_t k = 0; k < layout.size(); ++k)
      if (layout[k] == kNew)
        below.insert(below.begin() + static_cast<i64>(std::min(k, below.size())), kNew);
    // Dropped dimensions are of size 1 on both sides of a transpose.
    return assign(t.source, below);
  }

  /// Nothing outside reads what the region computes, and entries that live on do not add RESHAPEs.
  bool is_closed() {
    const auto inside = [&](const Op *user) {
      return user == &exit_ || std::find(ops_.begin(), ops_.end(), user) != ops_.end();
    };
    i64 gained = 1; // the exit
    for (const Op *op : ops_)
      for (const Value &r : op->results())
        for (const ir::Use &u : r.uses())
          if (!inside(u.owner()))
            return false;
    for (const auto &[v, layout] : layouts_) {
      const Op *p = v->producer();
      if (p->opcode() != op::RESHAPE)
        continue;
      size_t uses = 0;
      bool dies = true;
      for (const ir::Use &u : v->uses())
        if (++uses > kMostOps || !inside(u.owner())) {
          dies = false;
          break;
        }
      const bool same = std::ranges::equal(new_shape(v, layout), p->operand(0)->type().shape());
      gained += (dies ? 1 : 0) - (same ? 0 : 1);
    }
    return gained > 0;
  }

  /// Operands before users: a depth-first walk with its own stack.
  bool order() {
    boost::unordered_flat_map<const Op *, int> state; // 1: entered, 2: done
    std::vector<Op *> stack{exit_.operand(0)->producer()};
    while (!stack.empty()) {
      Op *op = stack.back();
      int &s = state[op];
      if (s != 0) {
        stack.pop_back();
        if (s == 1)
          order_.push_back(op);
        s = 2;
        continue;
      }
      s = 1;
      for (const ir::Use &u : op->operand_uses()) {
        Op *p = u.value() ? u.value()->producer() : nullptr;
        if (p && !state.contains(p) && std::find(ops_.begin(), ops_.end(), p) != ops_.end())
          stack.push_back(p);
      }
    }
    return order_.size() == ops_.size();
  }

  static SymDims new_shape(const Value *v, const Layout &layout) {
    SymDims out;
    for (i64 d : layout)
      out.push_back(d == kNew ? SymInt(1) : v->type().dim(static_cast<int>(d)));
    return out;
  }

  Value *operand(Rewriter &rw, const Op &op, Value *v) {
    if (const auto it = new_values_.find(v); it != new_values_.end())
      return it->second;
    const Layout &layout = layouts_.contains(v) ? layouts_[v] : layouts_[op.result()];
    Value *out = v;
    if (const ir::Constant *c = data_of(v)) {
      if (v->type().rank() == 0)
        return v;
      // Missing leading dimensions are ones.
      const int missing = op.result()->type().rank() - v->type().rank();
      SymDims shape;
      for (i64 d : layout)
        shape.push_back(d < missing ? SymInt(1) : v->type().dim(static_cast<int>(d) - missing));
      return rw.before(exit_).constant(reshaped(rw.graph(), *c, shape));
    }
    if (const Op *view = made_by(v, op::RESHAPE); view && layouts_.contains(v)) {
      const SymDims shape = new_shape(v, layout);
      Value *source = view->operand(0);
      out = std::ranges::equal(shape, source->type().shape())
                ? source
                : make_reshape(rw, exit_, source, shape);
      new_values_[v] = out;
    }
    return out;
  }

  Value *axes_like(Rewriter &rw, const Value *like, const Dims &values) {
    const std::vector<i32> v(values.begin(), values.end());
    return rw.before(exit_).constant_i32(v, like->type().rank() == 0);
  }

  void rebuild_op(Rewriter &rw, Op &op) {
    const Layout &layout = layouts_[op.result()];
    const OpCode c = op.opcode();
    std::vector<Value *> operands;
    if (c == op::TRANSPOSE) {
      const Transposed t = transposed(op.result());
      const Layout below = layouts_[t.source];
      Dims perm;
      std::vector<bool> taken(below.size(), false);
      for (i64 d : layout)
        for (size_t k = 0; k < below.size(); ++k) {
          const i64 want = d == kNew ? kNew : t.perm[static_cast<size_t>(d)];
          if (taken[k] || below[k] != want)
            continue;
          taken[k] = true;
          perm.push_back(static_cast<i64>(k));
          break;
        }
      operands = {operand(rw, op, t.source), axes_like(rw, op.operand(1), perm)};
    } else if (c == op::SPLIT) {
      const i64 axis = (*axes(op.operand(0), op.operand(1)))[0];
      operands = {axes_like(rw, op.operand(0), {from_the_end(layout, axis)}),
                  operand(rw, op, op.operand(1))};
    } else if (op.has(ir::trait::kReduction)) {
      Dims over = *axes(op.operand(1), op.operand(0));
      for (i64 &a : over)
        a = from_the_end(layout, a);
      operands = {operand(rw, op, op.operand(0)), axes_like(rw, op.operand(1), over)};
    } else {
      for (const ir::Use &u : op.operand_uses())
        operands.push_back(operand(rw, op, u.value()));
    }
    std::vector<Type> types;
    for (const Value &r : op.results())
      types.push_back(rw.context().with_shape(r.type(), new_shape(&r, layout)));
    const std::vector<Attr> attrs(op.attrs().begin(), op.attrs().end());
    Op *copy = rw.graph().create(op.opcode(), operands, attrs, types, op.loc());
    rw.graph().insert_before(*exit_.parent(), &exit_, copy);
    for (u32 i = 0; i < op.num_results(); ++i)
      new_values_[op.result(i)] = copy->result(i);
  }

  Op &exit_;
  std::vector<Op *> ops_, order_;
  boost::unordered_flat_map<const Value *, Layout> layouts_;
  boost::unordered_flat_map<const Value *, Value *> new_values_;
  i64 views_ = 0;
};

bool round_trip(Op &op, Rewriter &rw) {
  const Op *above = op.operand(0)->producer();
  if (!above || above->has(ir::trait::kConstant) || above->opcode() == op::RESHAPE)
    return false;
  RankRegion region(op);
  if (!region.find())
    return false;
  rw.replace(op, region.rebuild(rw));
  return true;
}

} // namespace

void add_rank_rules(pass::PatternSet &set) {
  set.add("rank-round-trip", {op::RESHAPE}, round_trip);
}

} // namespace chute::circle

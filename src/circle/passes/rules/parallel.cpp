// join-parallel: operators that do the same to parts of a tensor, whose results a CONCATENATION
// puts together, become one operator on the whole (horizontal fusion).
//
//   a, b = split(x); concatenation(exp(a * c), exp(b * c))  → exp(x * c)
//   concatenation(batch_matmul(a, w), batch_matmul(b, w))   → batch_matmul(concatenation(a, b), w)
//
// A region grows from the CONCATENATION upwards, one operator for each of its operands at a time:
// elementwise operators, SOFTMAX, RMS_NORM and FULLY_CONNECTED along other dimensions than their
// own, rows or columns of BATCH_MATMUL, TRANSPOSE, CONCATENATION and SPLIT along another dimension,
// where all have the same attributes, types and parameters and nothing outside reads them. Operands
// that are one value for all parts stay it. Where the region ends, the parts are joined: they are
// parts of one SPLIT already, or a CONCATENATION joins them. Rewritten when operators are saved.
// An axis with nothing but ones around may be another one, behind a RESHAPE.
//
// Exact: every element is computed from the same numbers (a runtime may sum a matrix product in
// another order). Left alone: activations that an operator before them can take up, values between
// reals and integers (fold-quantize pushes those apart), run-time shapes.
// Cost: at most 64 operators for a region and the axes of one tensor, for each CONCATENATION.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

constexpr size_t kMostTuples = 64;
constexpr size_t kMostParts = 64;

using Parts = std::vector<Value *>;

class ParallelRegion {
public:
  ParallelRegion(Op &root, int axis) : root_(root), axis_(axis) {}

  /// The operators saved when the parts are joined along the axis; <= 0 when it does not pay.
  i64 find() {
    Parts parts;
    for (const ir::Use &u : root_.operand_uses())
      parts.push_back(u.value());
    for (;;) {
      nodes_.clear();
      groups_.clear();
      const size_t top = node(parts, from_end(parts[0], axis_));
      if (top == kNone)
        return 0;
      bool again = false;
      for (Group &g : groups_)
        if (!is_closed(g)) {
          kept_.push_back(g.ops[0]);
          again = true;
        }
      if (!again)
        break;
    }
    if (groups_.empty())
      return 0;
    i64 saved = 1; // the root
    for (const Group &g : groups_)
      saved += static_cast<i64>(g.ops.size()) - 1;
    for (const Node &n : nodes_)
      if (n.group == kNone && !n.whole && !is_constant(n.parts)) {
        saved -= 1;
        if (std::ranges::any_of(n.parts, [&](const Value *v) { return inside(v->producer()); }))
          return 0; // one part is made from another
      }
    return saved;
  }

  Value *rebuild(Rewriter &rw) {
    // Operands first: a group is finished after those that it reads.
    for (size_t i = groups_.size(); i-- > 0;)
      depth_first(rw, i);
    return nodes_[0].value;
  }

private:
  static constexpr size_t kNone = ~size_t{0};

  /// Parts that become one value, joined along a dimension counted from the end (1: the last).
  struct Node {
    Parts parts;
    int at = 0;
    size_t group = kNone; ///< of operators that make the parts
    u32 result = 0;
    Value *whole = nullptr; ///< what they are parts of
    Value *value = nullptr;
  };
  /// Operators that become one.
  struct Group {
    std::vector<Op *> ops;
    std::vector<size_t> operands; ///< nodes; kNone: one value for all
    std::vector<Attr> attrs;
    int at = 0;
    Op *joined = nullptr;
  };

  static int from_end(const Value *v, int axis) { return v->type().rank() - axis; }
  static bool is_constant(const Parts &parts) {
    return std::ranges::all_of(parts, [](const Value *v) { return data_of(v) != nullptr; });
  }

  static bool alike(const Parts &parts) {
    const Type t = parts[0]->type();
    return t.has_static_shape() && is_movable(t) &&
           std::ranges::all_of(parts, [&](const Value *v) { return v->type() == t; });
  }

  /// The node of these parts; kNone when they can not be joined.
  size_t node(const Parts &parts, int at) {
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].at == at && nodes_[i].parts == parts)
        return i;
    if (!alike(parts) || at < 1 || at > parts[0]->type().rank() || nodes_.size() >= kMostTuples)
      return kNone;
    const size_t id = nodes_.size();
    nodes_.push_back({parts, at});
    if (Value *whole = split_source(parts, at))
      nodes_[id].whole = whole;
    else
      expand(id);
    return id;
  }

  static bool same_attrs(const Op &a, const Op &b) {
    return a.opcode() == b.opcode() && a.num_operands() == b.num_operands() &&
           a.num_results() == b.num_results() && std::ranges::equal(a.attrs(), b.attrs());
  }

  /// The operand of the SPLIT of which `parts` are all results in order.
  static Value *split_source(const Parts &parts, int at) {
    const Op *split = made_by(parts[0], op::SPLIT);
    if (!split || split->num_results() != parts.size())
      return nullptr;
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i] != split->result(static_cast<u32>(i)))
        return nullptr;
    const std::optional<int> axis = split_axis(*split);
    return axis && from_end(split->operand(1), *axis) == at &&
                   stored_alike(split->operand(1)->type(), parts[0]->type())
               ? split->operand(1)
               : nullptr;
  }

  static std::optional<int> split_axis(const Op &split) {
    const std::optional<Dims> at = small_ints(split.operand(0), 1);
    if (!at || at->size() != 1)
      return {};
    const i64 rank = split.operand(1)->type().rank();
    return static_cast<int>((*at)[0] + ((*at)[0] < 0 ? rank : 0));
  }

  /// Tries to make the parts of a node results of one group.
  void expand(size_t id) {
    const Parts parts = nodes_[id].parts;
    const int at = nodes_[id].at;
    std::vector<Op *> ops;
    u32 result = 0;
    for (Value *v : parts) {
      Op *p = v->producer();
      if (!p || !is_circle(p->opcode()) || p->num_regions() || p->parent() != root_.parent() ||
          std::ranges::find(ops, p) != ops.end() || (!ops.empty() && !same_attrs(*p, *ops[0])))
        return;
      const auto at_result = static_cast<u32>(v - p->results().data());
      if (ops.empty())
        result = at_result;
      else if (at_result != result)
        return;
      ops.push_back(p);
    }
    if (std::ranges::find(kept_, ops[0]) != kept_.end())
      return;
    for (size_t g = 0; g < groups_.size(); ++g)
      if (groups_[g].ops == ops) {
        if (groups_[g].at == at) {
          nodes_[id].group = g;
          nodes_[id].result = result;
        }
        return;
      }
    Group group;
    group.ops = ops;
    group.at = at;
    const size_t nodes = nodes_.size(), groups = groups_.size();
    groups_.push_back({});
    if (!plan(group)) {
      // What was explored for it goes again.
      nodes_.resize(nodes);
      groups_.resize(groups);
      for (Node &n : nodes_)
        if (n.group != kNone && n.group >= groups)
          n.group = kNone;
      return;
    }
    groups_[groups] = std::move(group);
    nodes_[id].group = groups;
    nodes_[id].result = result;
  }

  /// One operand of all operators: one value, or parts to be joined along `at`.
  bool operand(Group &g, u32 i, int at, bool may_differ = true) {
    Parts parts;
    bool same = true;
    for (const Op *op : g.ops) {
      parts.push_back(op->operand(i));
      same = same && parts.back() == parts[0];
    }
    g.operands.push_back(kNone);
    if (same)
      return true;
    if (!may_differ || std::ranges::find(parts, nullptr) != parts.end())
      return false;
    const size_t n = node(parts, at);
    g.operands.back() = n;
    return n != kNone;
  }

  bool differs(const Group &g, u32 i) const {
    return std::ranges::any_of(
        g.ops, [&](const Op *op) { return op->operand(i) != g.ops[0]->operand(i); });
  }

  bool plan(Group &g) {
    const Op &first = *g.ops[0];
    const OpCode c = first.opcode();
    g.attrs.assign(first.attrs().begin(), first.attrs().end());
    bool any = false; // equal operators over equal operands are for cse
    for (u32 i = 0; i < first.num_operands(); ++i)
      any = any || differs(g, i);
    if (!any)
      return false;
    for (const Value &r : first.results())
      if (!r.type().has_static_shape() || !is_movable(r.type()))
        return false;
    if (c == op::CONCATENATION)
      return plan_concatenation(g);
    if (c == op::SPLIT)
      return plan_split(g);
    if (c == op::BATCH_MATMUL)
      return plan_matmul(g);
    if (first.num_results() != 1)
      return false;
    if (c == op::TRANSPOSE)
      return plan_transpose(g);
    if (c == op::SOFTMAX || c == op::LOG_SOFTMAX || c == op::RMS_NORM)
      return g.at != 1 && rows(g);
    if (c == op::FULLY_CONNECTED)
      return g.at != 1 && first.attr("keep_num_dims").as_bool() && rows(g);
    return first.has(ir::trait::kElementwise) && c != op::PRELU && plan_elementwise(g);
  }

  /// Operand 0 has the dimension, the others belong to all rows alike.
  bool rows(Group &g) {
    const Op &first = *g.ops[0];
    if (first.operand(0)->type().rank() != first.result()->type().rank())
      return false;
    for (u32 i = 0; i < first.num_operands(); ++i)
      if (!operand(g, i, g.at, i == 0))
        return false;
    return true;
  }

  bool plan_elementwise(Group &g) {
    const Op &first = *g.ops[0];
    const OpCode c = first.opcode();
    // Layers take these up; so does the quantization of their results.
    if (c == op::RELU || c == op::RELU6 || c == op::RELU_N1_TO_1 || c == op::RELU_0_TO_1 ||
        c == op::DEQUANTIZE)
      return false;
    if (c == op::QUANTIZE && !first.operand(0)->type().quant())
      return false;
    const Type out = first.result()->type();
    const SymInt part = out.dim(out.rank() - g.at);
    for (u32 i = 0; i < first.num_operands(); ++i) {
      const Value *v = first.operand(i);
      if (!v)
        return false;
      const int d = v->type().rank() - g.at;
      const bool along = d >= 0 && v->type().dim(d) == part;
      if (differs(g, i) ? !along : d >= 0 && v->type().dim(d) != SymInt(1))
        return false;
      if (!operand(g, i, g.at))
        return false;
    }
    return true;
  }

  bool plan_matmul(Group &g) {
    const Op &first = *g.ops[0];
    const bool lhs = differs(g, 0), rhs = differs(g, 1);
    const bool adjoint_lhs = first.attr("adjoint_lhs").as_bool(),
               adjoint_rhs = first.attr("adjoint_rhs").as_bool();
    const int rank = first.result()->type().rank();
    if (first.operand(0)->type().rank() != rank || first.operand(1)->type().rank() != rank)
      return false;
    if (g.at == 2) // rows
      return lhs && !rhs && operand(g, 0, adjoint_lhs ? 1 : 2) && operand(g, 1, 0);
    if (g.at == 1) // columns
      return rhs && !lhs && operand(g, 0, 0) && operand(g, 1, adjoint_rhs ? 2 : 1);
    const int d = rank - g.at;
    const SymInt part = first.result()->type().dim(d);
    return lhs && rhs && first.operand(0)->type().dim(d) == part &&
           first.operand(1)->type().dim(d) == part && operand(g, 0, g.at) && operand(g, 1, g.at);
  }

  bool plan_transpose(Group &g) {
    const Op &first = *g.ops[0];
    const Transposed t = transposed(first.result());
    if (!t || differs(g, 1) || !stored_alike(t.source->type(), first.result()->type()))
      return false;
    const int rank = first.result()->type().rank();
    const auto below = static_cast<int>(t.perm[static_cast<size_t>(rank - g.at)]);
    return operand(g, 0, rank - below) && operand(g, 1, 0);
  }

  bool plan_concatenation(Group &g) {
    const Op &first = *g.ops[0];
    const int rank = first.result()->type().rank();
    i64 axis = first.attr("axis").as_int().value();
    axis += axis < 0 ? rank : 0;
    if (has_activation(first) || rank - axis == g.at)
      return false;
    for (u32 i = 0; i < first.num_operands(); ++i)
      if (!differs(g, i) || !operand(g, i, g.at))
        return false;
    return true;
  }

  bool plan_split(Group &g) {
    const Op &first = *g.ops[0];
    const std::optional<int> axis = split_axis(first);
    return axis && from_end(first.operand(1), *axis) != g.at && same_axis(g, *axis) &&
           differs(g, 1) && stored_alike(first.operand(1)->type(), first.result()->type()) &&
           operand_alone(g) && operand(g, 1, g.at);
  }
  /// Axes may be equal constants of their own.
  static bool same_axis(const Group &g, int axis) {
    return std::ranges::all_of(g.ops, [&](const Op *op) { return split_axis(*op) == axis; });
  }
  static bool operand_alone(Group &g) {
    g.operands.push_back(kNone);
    return true;
  }

  /// Nothing outside of the region reads what the group makes.
  bool is_closed(const Group &g) const {
    for (const Op *op : g.ops)
      for (const Value &r : op->results())
        for (const ir::Use *u = r.first_use(); u; u = u->next())
          if (u->owner() != &root_ && !inside(u->owner()))
            return false;
    return true;
  }
  bool inside(const Op *op) const {
    return op && std::ranges::any_of(groups_, [&](const Group &g) {
             return std::ranges::find(g.ops, op) != g.ops.end();
           });
  }

  // --- rewriting ---------------------------------------------------------------------------------
  Type whole_type(Rewriter &rw, Type part, int at) const {
    SymDims shape(part.shape().begin(), part.shape().end());
    SymInt &d = shape[static_cast<size_t>(part.rank() - at)];
    d = SymInt(d.value() * static_cast<i64>(root_.num_operands()));
    return rw.context().with_shape(part, shape);
  }

  Value *value_of(Rewriter &rw, Node &n) {
    if (n.group != kNone)
      return groups_[n.group].joined->result(n.result);
    if (!n.value && n.whole)
      n.value = n.whole;
    if (!n.value) {
      const Type type = n.parts[0]->type();
      const NamedAttr axis{"axis", Attr::of_int(type.rank() - n.at)};
      const Type whole = whole_type(rw, type, n.at);
      n.value =
          rw.before(root_)
              .create_typed(op::CONCATENATION, n.parts, std::span(&axis, 1), std::span(&whole, 1))
              ->result();
    }
    return n.value;
  }

  void depth_first(Rewriter &rw, size_t start) {
    std::vector<size_t> stack{start};
    while (!stack.empty()) {
      Group &g = groups_[stack.back()];
      bool ready = true;
      for (size_t n : g.operands)
        if (!g.joined && n != kNone && nodes_[n].group != kNone &&
            !groups_[nodes_[n].group].joined) {
          stack.push_back(nodes_[n].group);
          ready = false;
        }
      if (!ready)
        continue;
      stack.pop_back();
      if (!g.joined)
        join(rw, g);
    }
    Node &top = nodes_[0];
    if (top.group != kNone && groups_[top.group].joined)
      top.value = groups_[top.group].joined->result(top.result);
  }

  void join(Rewriter &rw, Group &g) {
    Op &first = *g.ops[0];
    std::vector<Value *> operands;
    for (u32 i = 0; i < first.num_operands(); ++i) {
      const size_t n = g.operands[i];
      operands.push_back(n == kNone ? first.operand(i) : value_of(rw, nodes_[n]));
    }
    std::vector<Type> types;
    for (const Value &r : first.results())
      types.push_back(whole_type(rw, r.type(), g.at));
    g.joined = rw.graph().create(first.opcode(), operands, g.attrs, types, first.loc());
    rw.graph().insert_before(*root_.parent(), &root_, g.joined);
  }

  Op &root_;
  int axis_;
  std::vector<Node> nodes_;
  std::vector<Group> groups_;
  std::vector<Op *> kept_; ///< of operators that something outside reads
};

bool join_parallel(Op &op, Rewriter &rw) {
  const Type type = op.result()->type();
  if (has_activation(op) || op.num_operands() < 2 || op.num_operands() > kMostParts ||
      !type.has_static_shape() || !is_movable(type))
    return false;
  const Value *part = op.operand(0);
  const Op *p = part->producer();
  if (!p || p->has(ir::trait::kConstant) || part->type().rank() != type.rank())
    return false;
  i64 axis = op.attr("axis").as_int().value();
  axis += axis < 0 ? type.rank() : 0;
  // The axis itself first, then others with nothing but ones between.
  Dims axes{axis};
  const std::span<const SymInt> shape = part->type().shape();
  for (i64 a = axis - 1; a >= 0 && shape[static_cast<size_t>(a)] == SymInt(1); --a)
    axes.push_back(a);
  for (i64 a = axis; a + 1 < type.rank() && shape[static_cast<size_t>(a)] == SymInt(1); ++a)
    axes.push_back(a + 1);
  bool viewed = op.result()->has_uses();
  for (const ir::Use *u = op.result()->first_use(); u && viewed; u = u->next())
    viewed = u->owner()->opcode() == op::RESHAPE;
  i64 best = 0, chosen = -1;
  for (i64 a : axes) {
    const i64 saved =
        ParallelRegion(op, static_cast<int>(a)).find() - (a == axis || viewed ? 0 : 1);
    if (saved > best) {
      best = saved;
      chosen = a;
    }
  }
  if (chosen < 0)
    return false;
  ParallelRegion region(op, static_cast<int>(chosen));
  region.find();
  Value *whole = region.rebuild(rw);
  rw.replace(op, chosen == axis ? whole : make_reshape(rw, op, whole, type.shape()));
  return true;
}

} // namespace

void add_parallel_rules(pass::PatternSet &set) {
  set.add("join-parallel", {op::CONCATENATION}, join_parallel);
}

void join_parallel_operators(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_parallel_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

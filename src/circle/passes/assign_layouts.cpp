// assign-layouts: chooses for every operator that works in any order of dimensions the order in
// which the program needs fewest transposes.
//
//   %a = transpose(%x, [0,3,1,2])  %b = exp(%a)  %y = transpose(%b, [0,2,3,1])
//                                                →  %y = exp(%x)
//   one operand transposed, three results transposed back, one used as it is
//                                                →  no transpose before, one behind
//
// Operators that layout_moves.h can move are joined to regions over values and transposes. Within a
// region every value is one logical tensor whose dimensions come in some order (its layout); a
// transpose costs one wherever a value is needed in a layout other than that in which it is made,
// once per value and layout. Two layouts: a minimum cut, so no assignment needs fewer. More:
// cuts for two layouts at a time, each of which can only lower the number. A region is left as it
// is unless the number falls.
//
// Values are the same bit for bit. Left alone: operands of lower rank, axes and permutations known
// at run time, values quantized per channel, transposes that close a cycle in which dimensions come
// back in another order (they stay, as borders of the region), more than 8 dimensions, regions
// whose cut takes more than kMostWork looks per edge. Equal transposes of one value are `cse`'s to
// merge.
#include "circle/passes.h"
#include "circle/passes/layout_moves.h"
#include "circle/passes/rules/rules.h"
#include "ir/walk.h"
#include "support/min_cut.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <numeric>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

constexpr u64 kMostWork = 400;
constexpr size_t kMostLayouts = 6;
constexpr int kMostDims = 8;
constexpr u32 kNone = ~u32{0};

/// A permutation of up to 8 dimensions, four bits each.
using Perm = u32;
constexpr Perm kIdentity = 0x76543210;
constexpr u32 at(Perm p, u32 i) { return p >> (4 * i) & 7; }
Perm packed(std::span<const i64> dims) {
  Perm p = kIdentity;
  for (size_t i = 0; i < dims.size(); ++i)
    p = (p & ~(u32{15} << (4 * i))) | static_cast<u32>(dims[i]) << (4 * i);
  return p;
}
/// The transpose by `a` and then by `b` in one.
Perm compose(Perm a, Perm b) {
  Perm p = 0;
  for (u32 i = 0; i < 8; ++i)
    p |= at(a, at(b, i)) << (4 * i);
  return p;
}
Perm inverted(Perm a) {
  Perm p = 0;
  for (u32 i = 0; i < 8; ++i)
    p |= i << (4 * at(a, i));
  return p;
}
Dims unpacked(Perm p, size_t rank) {
  Dims out;
  for (u32 i = 0; i < rank; ++i)
    out.push_back(at(p, i));
  return out;
}

/// What each operator that moves is moved by, by Op::id.
using Moves = boost::unordered_flat_map<u32, Perm>;

class Layouts {
public:
  Layouts(ir::Graph &graph, WorkCounters &work) : graph_(graph), work_(work) {}

  Moves run() {
    parent_.resize(graph_.num_value_ids());
    std::iota(parent_.begin(), parent_.end(), 0u);
    layout_.assign(graph_.num_value_ids(), kIdentity);
    variable_.assign(graph_.num_op_ids(), kNone);
    joined_.assign(graph_.num_op_ids(), 0);
    join();
    if (transposes_.empty())
      return {};
    group();
    Moves moves;
    for (const Region &r : regions_)
      solve(r, moves);
    return moves;
  }

private:
  /// An operator whose layout is chosen.
  struct Variable {
    Op *op;
    Perm layout; ///< now
    Perm chosen;
  };
  /// A value that is made in one layout, by a variable or in a layout that is given, and the
  /// layouts in which it is needed.
  struct Source {
    u32 variable = kNone;
    Perm layout = kIdentity;
    std::vector<u32> users;   ///< variables
    std::vector<Perm> needed; ///< by others
  };
  struct Region {
    std::vector<u32> variables;
    std::vector<const Value *> roots; ///< values that are no result of a transpose within
    u32 transposes = 0;
  };

  // --- regions: a forest over values, each with the order of its dimensions in its parent
  // ---------

  u32 find(u32 v) {
    u32 root = v;
    Perm to_root = kIdentity;
    while (parent_[root] != root) {
      to_root = compose(layout_[root], to_root);
      root = parent_[root];
      ++work_.ops_visited;
    }
    // Everything on the way hangs from the root afterwards.
    for (Perm p = to_root; parent_[v] != v && parent_[v] != root;) {
      const u32 up = parent_[v];
      const Perm own = layout_[v];
      parent_[v] = root;
      layout_[v] = p;
      p = compose(p, inverted(own));
      v = up;
    }
    return root;
  }
  Perm layout_of(const Value *v) {
    find(v->id());
    return parent_[v->id()] == v->id() ? kIdentity : layout_[v->id()];
  }
  /// `b` is `a` transposed by p. False when that contradicts what is known.
  bool unite(const Value *a, const Value *b, Perm p) {
    const u32 x = find(a->id()), y = find(b->id());
    const Perm want = compose(layout_of(a), p), have = layout_of(b);
    if (x == y)
      return want == have;
    parent_[y] = x;
    layout_[y] = compose(want, inverted(have));
    return true;
  }

  static bool fits(const Op &op) {
    if (!can_move(op) || op.result()->type().rank() > kMostDims)
      return false;
    bool any = false;
    for (const Value &r : op.results())
      if (!is_movable(r.type()))
        return false;
    for (u32 i = 0; i < op.num_operands(); ++i) {
      const Value *v = op.operand(i);
      if (!v || !carries_layout(op, i))
        continue;
      const ir::Region *home = v->producer() ? v->producer()->parent() : v->argument_of();
      if (home != op.parent() || !is_movable(v->type()))
        return false;
      any = true;
    }
    return any;
  }

  void join() {
    ir::walk(graph_, [&](Op &op) {
      ++work_.ops_visited;
      if (op.opcode() == op::TRANSPOSE) {
        const Value *x = op.operand(0);
        const ir::Region *home = x->producer() ? x->producer()->parent() : x->argument_of();
        if (home == op.parent() && x->type().rank() <= kMostDims && is_movable(x->type()) &&
            op.operand(1) && small_ints(op.operand(1)) && transposed(op.result()))
          transposes_.push_back(&op);
      } else if (fits(op)) {
        variable_[op.id()] = static_cast<u32>(variables_.size());
        variables_.push_back({&op, kIdentity, kIdentity});
        for (u32 i = 0; i < op.num_operands(); ++i)
          if (op.operand(i) && carries_layout(op, i))
            unite(op.result(), op.operand(i), kIdentity);
        for (const Value &r : op.results())
          unite(op.result(), &r, kIdentity);
      }
    });
    for (const Op *op : transposes_) {
      const Transposed t = transposed(op->result());
      if (unite(t.source, op->result(), packed(t.perm)))
        joined_[op->id()] = 1;
    }
  }

  void group() {
    boost::unordered_flat_map<u32, u32> region_of;
    const auto region = [&](const Value *v) -> Region & {
      const auto [it, fresh] =
          region_of.try_emplace(find(v->id()), static_cast<u32>(regions_.size()));
      if (fresh)
        regions_.emplace_back();
      return regions_[it->second];
    };
    std::vector<u8> seen(graph_.num_value_ids(), 0);
    for (u32 i = 0; i < variables_.size(); ++i) {
      Variable &v = variables_[i];
      v.layout = v.chosen = layout_of(v.op->result());
      region(v.op->result()).variables.push_back(i);
    }
    const auto root = [&](const Value *v) {
      if (v->producer() && joined_[v->producer()->id()])
        return;
      if (!seen[v->id()]) {
        seen[v->id()] = 1;
        region(v).roots.push_back(v);
      }
    };
    for (const Variable &v : variables_) {
      for (u32 i = 0; i < v.op->num_operands(); ++i)
        if (v.op->operand(i) && carries_layout(*v.op, i))
          root(v.op->operand(i));
      for (const Value &r : v.op->results())
        root(&r);
    }
    for (const Op *op : transposes_)
      if (joined_[op->id()]) {
        root(op->operand(0));
        ++region(op->operand(0)).transposes;
      }
  }

  // --- one region
  // ----------------------------------------------------------------------------------

  Source source_of(const Value *root) {
    Source s;
    if (root->producer() && variable_[root->producer()->id()] != kNone)
      s.variable = variable_[root->producer()->id()];
    s.layout = layout_of(root);
    std::vector<const Value *> values{root};
    while (!values.empty()) {
      const Value *v = values.back();
      values.pop_back();
      for (const ir::Use &u : v->uses()) {
        ++work_.ops_visited;
        const Op *user = u.owner();
        if (joined_[user->id()] && u.operand_index() == 0)
          values.push_back(user->result());
        else if (variable_[user->id()] != kNone && carries_layout(*user, u.operand_index()))
          s.users.push_back(variable_[user->id()]);
        else
          s.needed.push_back(layout_of(v));
      }
    }
    const auto unique = [](auto &list) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    };
    unique(s.users);
    unique(s.needed);
    return s;
  }

  Perm made_in(const Source &s) const {
    return s.variable == kNone ? s.layout : variables_[s.variable].chosen;
  }

  /// Transposes that a source takes, of those into `a` or `b` (all of them: count()).
  u64 count(const Source &s, std::vector<Perm> &scratch) const {
    scratch = s.needed;
    for (const u32 u : s.users)
      scratch.push_back(variables_[u].chosen);
    std::sort(scratch.begin(), scratch.end());
    scratch.erase(std::unique(scratch.begin(), scratch.end()), scratch.end());
    return scratch.size() - std::binary_search(scratch.begin(), scratch.end(), made_in(s));
  }

  void solve(const Region &region, Moves &moves) {
    if (region.transposes == 0 || region.variables.empty())
      return;
    std::vector<Source> sources;
    std::vector<Perm> layouts, scratch;
    for (const Value *root : region.roots) {
      Source &s = sources.emplace_back(source_of(root));
      layouts.push_back(s.layout);
      layouts.insert(layouts.end(), s.needed.begin(), s.needed.end());
    }
    for (const u32 v : region.variables)
      layouts.push_back(variables_[v].layout);
    std::sort(layouts.begin(), layouts.end());
    layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
    if (layouts.size() < 2 || layouts.size() > kMostLayouts)
      return;
    u64 before = 0;
    for (const Source &s : sources)
      before += count(s, scratch);
    u64 now = before;
    constexpr int kMostRounds = 3; // of cuts for every two of several layouts
    int rounds = 0;
    for (bool better = true; better && now && rounds < kMostRounds; ++rounds) {
      better = false;
      for (size_t i = 0; i < layouts.size(); ++i)
        for (size_t k = 0; k < i; ++k)
          if (swap(region, sources, layouts[i], layouts[k])) {
            u64 cost = 0;
            for (const Source &s : sources)
              cost += count(s, scratch);
            better = better || cost < now;
            now = cost;
          }
      better = better && layouts.size() > 2;
    }
    if (now >= before)
      return;
    for (const u32 v : region.variables)
      if (const Variable &x = variables_[v]; x.chosen != x.layout)
        moves.emplace(x.op->id(), compose(inverted(x.chosen), x.layout));
  }

  bool allowed(const Variable &v, Perm layout) const {
    const auto rank = static_cast<size_t>(v.op->result()->type().rank());
    return can_move(*v.op, unpacked(compose(inverted(layout), v.layout), rank));
  }

  /// The best way to have the variables in layouts `a` and `b` in either, all else as it is. True
  /// when it takes fewer transposes than before; nothing changes otherwise.
  bool swap(const Region &region, const std::vector<Source> &sources, Perm a, Perm b) {
    MinCut cut; // the source's side: layout a
    node_.resize(variables_.size(), -1);
    std::vector<u32> open;
    for (const u32 v : region.variables) {
      const Variable &x = variables_[v];
      node_[v] = -1;
      if ((x.chosen == a || x.chosen == b) && allowed(x, x.chosen == a ? b : a)) {
        node_[v] = cut.add_node();
        open.push_back(v);
      }
    }
    const auto node_of = [&](u32 variable, Perm layout) {
      if (variable != kNone && node_[variable] >= 0)
        return node_[variable];
      return layout == a ? MinCut::kSource : layout == b ? MinCut::kSink : i32{-1};
    };
    u64 before = 0;
    i64 fixed = 0;
    for (const Source &s : sources) {
      const i32 made = node_of(s.variable, made_in(s));
      std::vector<i32> users;
      for (const u32 u : s.users)
        if (const i32 n = node_of(u, variables_[u].chosen); n >= 0)
          users.push_back(n);
      for (const Perm p : s.needed)
        if (p == a || p == b)
          users.push_back(p == a ? MinCut::kSource : MinCut::kSink);
      std::sort(users.begin(), users.end());
      users.erase(std::unique(users.begin(), users.end()), users.end());
      for (const Perm p : {a, b}) {
        bool needed = std::binary_search(s.needed.begin(), s.needed.end(), p);
        for (const u32 u : s.users)
          needed = needed || variables_[u].chosen == p;
        before += needed && made_in(s) != p;
      }
      fixed += demand(cut, made, users, true) + demand(cut, made, users, false);
    }
    if (open.empty())
      return false;
    const i64 after = cut.solve(kMostWork * (cut.num_edges() + 16), &work_.ops_visited);
    if (after < 0 || static_cast<u64>(after + fixed) >= before)
      return false;
    for (const u32 v : open)
      variables_[v].chosen = cut.with_source(node_[v]) ? a : b;
    return true;
  }

  /// One transpose if a value that is made on the other side is needed on this one: the source's
  /// (`of_source`) or the sink's. `made` -1: in a layout of neither. Returns 1 when it is needed
  /// whatever is chosen.
  static i64 demand(MinCut &cut, i32 made, const std::vector<i32> &users, bool of_source) {
    const i32 here = of_source ? MinCut::kSource : MinCut::kSink;
    const i32 there = of_source ? MinCut::kSink : MinCut::kSource;
    if (made == -1)
      made = there;
    if (made == here)
      return 0;
    const bool always = std::binary_search(users.begin(), users.end(), here);
    if (always && made == there)
      return 1;
    const auto edge = [&](i32 from, i32 to, i32 cost) {
      of_source ? cut.add_edge(from, to, cost) : cut.add_edge(to, from, cost);
    };
    if (always) {
      edge(here, made, 1);
      return 0;
    }
    std::vector<i32> free;
    for (const i32 u : users)
      if (u != there && u != made)
        free.push_back(u);
    if (free.empty())
      return 0;
    if (free.size() == 1) {
      edge(free[0], made, 1);
      return 0;
    }
    const i32 any = cut.add_node();
    for (const i32 u : free)
      edge(u, any, MinCut::kUncuttable);
    edge(any, made, 1);
    return 0;
  }

  ir::Graph &graph_;
  WorkCounters &work_;
  std::vector<u32> parent_;  // by Value::id
  std::vector<Perm> layout_; // by Value::id: as the parent's dimensions are transposed
  std::vector<u32> variable_;
  std::vector<u8> joined_;
  std::vector<Variable> variables_;
  std::vector<Op *> transposes_;
  std::vector<Region> regions_;
  std::vector<i32> node_; // by variable, of the cut at hand
};

bool move(Op &op, Rewriter &rw) {
  const auto &moves = *static_cast<const Moves *>(rw.user());
  const auto it = moves.find(op.id());
  if (it == moves.end())
    return false;
  const Dims perm = unpacked(it->second, static_cast<size_t>(op.result()->type().rank()));
  const Dims inv = inverse(perm);
  std::vector<Value *> operands(op.num_operands(), nullptr);
  for (u32 i = 0; i < op.num_operands(); ++i)
    if (op.operand(i) && carries_layout(op, i))
      operands[i] = make_transpose(rw, op, op.operand(i), inv);
  replace_transposed(op, rw, recreate_moved(rw, op, operands, perm), perm);
  return true;
}

} // namespace

void assign_layouts(pass::PassContext &ctx) {
  Moves moves = Layouts(ctx.graph, ctx.counters).run();
  if (moves.empty())
    return;
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    pass::Pattern p{"move-to-layout", {}, move};
    for (const ir::OpDef *def : ir::Registry::global().all())
      if (is_circle(def->opcode) && def->opcode != op::TRANSPOSE)
        p.roots.push_back(def->opcode);
    s.add(std::move(p));
    add_transpose_rules(s);
    return s;
  }();
  ctx.run(set, &moves);
}

} // namespace chute::circle

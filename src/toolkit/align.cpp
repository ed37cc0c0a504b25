#include "toolkit/align.h"

#include "ir/walk.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <string>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

u64 mix(u64 h, u64 v) {
  u64 z = (h ^ v) + 0x9E3779B97F4A7C15ull + (h << 6);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

bool is_constant(const Op &op) { return op.opcode() == ir::core_op::constant; }

/// How much two operators have to share to be taken for counterparts.
enum Level { kAll, kNoConstants, kOpcode, kLevels };

/// One graph and the hashes of its operators.
class Side {
public:
  Side(const ir::Graph &graph, WorkCounters &work) : graph_(graph), work_(work) {
    position_.assign(graph.num_op_ids(), 0);
    ir::walk(graph, [&](const Op &op) {
      position_[op.id()] = static_cast<u32>(ops_.size());
      ops_.push_back(&op);
    });
    for (auto &k : keys_)
      k.assign(ops_.size(), 0);
    find_keys();
    find_ancestors();
    find_descendants();
  }

  const ir::Graph &graph() const { return graph_; }
  const std::vector<const Op *> &ops() const { return ops_; }
  u32 position(const Op &op) const { return position_[op.id()]; }
  u64 key(const Op &op, Level level) const { return keys_[level][position(op)]; }
  u64 ancestors(u32 i) const { return ancestors_[i]; }
  u64 descendants(u32 i) const { return descendants_[i]; }
  /// Constants and returns have no counterparts of their own.
  static bool is_node(const Op &op) { return !is_constant(op) && !op.has(ir::trait::kTerminator); }

  u64 content(const ir::Constant &c) {
    const auto [it, fresh] = contents_.try_emplace(&c, 0);
    if (fresh) {
      u64 h = type_hash(c.type);
      if (c.has_data) {
        const ir::ContentHash &hash = c.hash(&work_.bytes_hashed);
        h = mix(mix(h, hash.low), hash.high);
      }
      it->second = h;
    }
    return it->second;
  }

private:
  u64 type_hash(ir::Type t) {
    if (!t)
      return 1;
    if (t.id() >= types_.size())
      types_.resize(std::max<size_t>(t.id() + 1, types_.size() * 2), 0);
    u64 &h = types_[t.id()];
    if (h == 0) {
      h = mix(static_cast<u64>(t.kind()), static_cast<u64>(t.element()));
      for (ir::SymInt d : t.shape())
        h = mix(h, d.is_symbolic() ? ~u64{0} : static_cast<u64>(d.value()));
      h = mix(h, reinterpret_cast<u64>(t.quant())) | 1;
    }
    return h;
  }

  u64 attr_hash(ir::Attr a) {
    if (a.kind() == ir::AttrKind::Constant)
      return content(*a.as_constant());
    if (a.kind() == ir::AttrKind::Int && a.as_int().is_symbolic())
      return 2;
    return mix(static_cast<u64>(a.kind()), a.payload());
  }

  void find_keys() {
    std::vector<u64> inside(ops_.size(), 0); // of an operator's regions, whatever the order
    for (size_t i = ops_.size(); i-- > 0;) {
      const Op &op = *ops_[i];
      ++work_.ops_visited;
      const u64 code = mix(ir::index(op.opcode()), op.num_regions());
      u64 h = mix(code, op.num_operands());
      for (const ir::Attr a : op.attrs())
        h = mix(h, attr_hash(a));
      for (const Value &r : op.results())
        h = mix(h, type_hash(r.type()));
      u64 all = mix(h, inside[i]);
      for (u32 k = 0; k < op.num_operands(); ++k) {
        const Value *v = op.operand(k);
        if (!v)
          h = mix(h, k);
        else if (const Op *p = v->producer(); p && is_constant(*p))
          all = mix(mix(all, k), content(*p->attr(0u).as_constant()));
      }
      // Unregistered operators and custom ones are named by an attribute.
      u64 opcode = code;
      if (op.opcode() == ir::core_op::unregistered)
        opcode = mix(code, attr_hash(op.attr(0u)));
      else if (const ir::Attr custom = op.attr("custom_code"); !custom.is_none())
        opcode = mix(code, attr_hash(custom));
      keys_[kAll][i] = mix(all, h);
      keys_[kNoConstants][i] = h;
      keys_[kOpcode][i] = opcode;
      if (const Op *outer = op.parent()->parent_op())
        inside[position(*outer)] += mix(keys_[kAll][i], 3);
    }
  }

  void find_ancestors() {
    ancestors_.assign(ops_.size(), 0);
    const auto of_value = [&](const Value &v) {
      if (const Op *p = v.producer())
        return is_constant(*p) ? content(*p->attr(0u).as_constant())
                               : mix(ancestors_[position(*p)], v.index());
      const Op *outer = v.argument_of()->parent_op();
      return mix(outer ? ancestors_[position(*outer)] : 4, v.index());
    };
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op &op = *ops_[i];
      u64 h = keys_[kAll][i];
      for (const ir::Use &u : op.operand_uses()) {
        ++work_.ops_visited;
        h = mix(h, u.value() ? of_value(*u.value()) : 5);
      }
      ancestors_[i] = h;
    }
  }

  void find_descendants() {
    descendants_.assign(ops_.size(), 0);
    for (size_t i = ops_.size(); i-- > 0;) {
      const Op &op = *ops_[i];
      u64 h = keys_[kAll][i];
      for (const Value &r : op.results()) {
        u64 users = 0; // in any order
        for (const ir::Use &u : r.uses()) {
          ++work_.ops_visited;
          users += mix(descendants_[position(*u.owner())], u.operand_index());
        }
        h = mix(h, users);
      }
      descendants_[i] = h;
    }
  }

  const ir::Graph &graph_;
  WorkCounters &work_;
  std::vector<const Op *> ops_; // in SSA order, an operator before those inside of it
  std::vector<u32> position_;   // by Op::id
  std::vector<u64> keys_[kLevels];
  std::vector<u64> ancestors_;
  std::vector<u64> descendants_;
  std::vector<u64> types_; // by Type::id
  boost::unordered_flat_map<const ir::Constant *, u64> contents_;
};

struct Keyed {
  u64 key;
  u32 position;
  u32 operand = 0;
  friend bool operator<(const Keyed &x, const Keyed &y) {
    return std::tie(x.key, x.operand, x.position) < std::tie(y.key, y.operand, y.position);
  }
};

/// Sorts both lists and calls `group` with the ranges of equal key and operand index.
template <class Group>
void for_common_groups(std::vector<Keyed> &a, std::vector<Keyed> &b, Group &&group) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto end_of = [](const std::vector<Keyed> &list, size_t i) {
    size_t e = i;
    while (e < list.size() && list[e].key == list[i].key && list[e].operand == list[i].operand)
      ++e;
    return e;
  };
  const auto less = [](const Keyed &x, const Keyed &y) {
    return std::tie(x.key, x.operand) < std::tie(y.key, y.operand);
  };
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (less(a[i], b[k]))
      ++i;
    else if (less(b[k], a[i]))
      ++k;
    else {
      const size_t ie = end_of(a, i), ke = end_of(b, k);
      group(std::span(a).subspan(i, ie - i), std::span(b).subspan(k, ke - k));
      i = ie;
      k = ke;
    }
  }
}

class Aligner {
public:
  Aligner(const ir::Graph &a, const ir::Graph &b) : a_(a, out_.work), b_(b, out_.work) {
    out_.b_of_a.assign(a.num_op_ids(), nullptr);
    out_.a_of_b.assign(b.num_op_ids(), nullptr);
    out_.value_b_of_a.assign(a.num_value_ids(), nullptr);
  }

  Alignment run() {
    by_hash([](const Side &s, u32 i) { return mix(s.ancestors(i), s.descendants(i)); });
    by_hash([](const Side &s, u32 i) { return s.ancestors(i); });
    by_hash([](const Side &s, u32 i) { return s.descendants(i); });
    pair_inputs();
    pair_unique_constants();
    spread(kAll);
    spread(kNoConstants);
    pair_unique_names();
    spread(kNoConstants);
    spread(kOpcode);
    return std::move(out_);
  }

private:
  bool free_a(const Op &op) const { return Side::is_node(op) && !out_.b_of_a[op.id()]; }
  bool free_b(const Op &op) const { return Side::is_node(op) && !out_.a_of_b[op.id()]; }

  void pair(const Op &x, const Op &y) {
    out_.b_of_a[x.id()] = &y;
    out_.a_of_b[y.id()] = &x;
    for (u32 i = 0; i < std::min(x.num_results(), y.num_results()); ++i)
      pair_values(*x.result(i), *y.result(i));
    for (u32 r = 0; r < std::min(x.num_regions(), y.num_regions()); ++r)
      for (u32 i = 0; i < std::min(x.region(r)->num_args(), y.region(r)->num_args()); ++i)
        pair_values(*x.region(r)->arg(i), *y.region(r)->arg(i));
    work_.push_back(&x);
  }

  void pair_values(const Value &x, const Value &y) {
    if (out_.value_b_of_a[x.id()])
      return;
    out_.value_b_of_a[x.id()] = &y;
    values_.push_back(&x);
  }

  template <class Hash>
  void by_hash(Hash &&hash) {
    std::vector<Keyed> a, b;
    for (u32 i = 0; i < a_.ops().size(); ++i)
      if (free_a(*a_.ops()[i]))
        a.push_back({hash(a_, i), i});
    for (u32 i = 0; i < b_.ops().size(); ++i)
      if (free_b(*b_.ops()[i]))
        b.push_back({hash(b_, i), i});
    for_common_groups(a, b, [&](std::span<const Keyed> x, std::span<const Keyed> y) {
      for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
        pair(*a_.ops()[x[i].position], *b_.ops()[y[i].position]);
    });
  }

  void pair_inputs() {
    const auto &a = a_.graph().inputs();
    const auto &b = b_.graph().inputs();
    boost::unordered_flat_map<std::string_view, const Value *> by_name;
    for (const ir::InputInfo &i : b)
      if (i.value)
        by_name.try_emplace(i.name, i.value);
    std::vector<const Value *> rest_a, rest_b;
    boost::unordered_flat_map<const Value *, bool> taken;
    for (const ir::InputInfo &i : a) {
      if (!i.value)
        continue;
      const auto it = by_name.find(i.name);
      if (it != by_name.end() && taken.try_emplace(it->second, true).second)
        pair_values(*i.value, *it->second);
      else
        rest_a.push_back(i.value);
    }
    for (const ir::InputInfo &i : b)
      if (i.value && !taken.contains(i.value))
        rest_b.push_back(i.value);
    if (a.empty() && b.empty()) { // a graph under construction or a text without an interface
      rest_a.assign(a_.graph().body().args().begin(), a_.graph().body().args().end());
      rest_b.assign(b_.graph().body().args().begin(), b_.graph().body().args().end());
    }
    for (size_t i = 0; i < std::min(rest_a.size(), rest_b.size()); ++i)
      pair_values(*rest_a[i], *rest_b[i]);
  }

  void pair_unique_constants() {
    struct Seen {
      const Value *value = nullptr;
      u32 count = 0;
    };
    boost::unordered_flat_map<u64, Seen> a, b;
    std::vector<u64> order;
    const auto collect = [](Side &side, auto &map, std::vector<u64> *keys) {
      for (const Op *op : side.ops())
        if (is_constant(*op)) {
          const u64 key = side.content(*op->attr(0u).as_constant());
          Seen &s = map[key];
          s.value = op->result();
          if (++s.count == 1 && keys)
            keys->push_back(key);
        }
    };
    collect(a_, a, &order);
    collect(b_, b, nullptr);
    for (u64 key : order) {
      const auto other = b.find(key);
      if (other != b.end() && a[key].count == 1 && other->second.count == 1)
        pair_values(*a[key].value, *other->second.value);
    }
  }

  void pair_unique_names() {
    struct Seen {
      const Op *op = nullptr;
      u32 count = 0;
    };
    // Keyed by opcode and name; both sides share the Context, so that ids are names.
    boost::unordered_flat_map<u64, Seen> b;
    const auto key = [](const Side &side, const Op &op) {
      return mix(side.key(op, kOpcode), op.result()->name().id);
    };
    const auto has_name = [](const Op &op) { return op.num_results() && op.result()->name(); };
    boost::unordered_flat_map<u64, Seen> a;
    for (const Op *op : a_.ops())
      if (Side::is_node(*op) && has_name(*op)) {
        Seen &s = a[key(a_, *op)];
        s.op = op;
        ++s.count;
      }
    for (const Op *op : b_.ops())
      if (Side::is_node(*op) && has_name(*op)) {
        Seen &s = b[key(b_, *op)];
        s.op = op;
        ++s.count;
      }
    for (const Op *op : a_.ops()) {
      if (!has_name(*op) || !free_a(*op))
        continue;
      const u64 k = key(a_, *op);
      const auto other = b.find(k);
      if (other != b.end() && other->second.count == 1 && a[k].count == 1 &&
          free_b(*other->second.op))
        pair(*op, *other->second.op);
    }
  }

  /// From every pair to its neighbours, as far as it goes.
  void spread(Level level) {
    work_.clear();
    values_.clear();
    for (const Op *op : a_.ops())
      if (out_.b_of_a[op->id()])
        work_.push_back(op);
    for (const Value *v : a_.graph().body().args())
      if (out_.value_b_of_a[v->id()])
        values_.push_back(v);
    for (const Op *op : a_.ops())
      for (const Value &r : op->results())
        if (out_.value_b_of_a[r.id()])
          values_.push_back(&r);
    outputs(level);
    while (!work_.empty() || !values_.empty()) {
      if (!values_.empty()) {
        const Value *v = values_.front();
        values_.pop_front();
        users(*v, *out_.value_b_of_a[v->id()], level);
      } else {
        const Op *op = work_.front();
        work_.pop_front();
        operands(*op, *out_.b_of_a[op->id()], level);
      }
    }
  }

  void producers(const Value *x, const Value *y, Level level) {
    ++out_.work.ops_visited;
    if (!x || !y)
      return;
    const Op *p = x->producer(), *q = y->producer();
    if (!p || !q || x->index() != y->index())
      return;
    if (is_constant(*p) && is_constant(*q)) {
      // Users of a constant follow only where the operand's own position says so.
      if (!out_.value_b_of_a[x->id()])
        out_.value_b_of_a[x->id()] = y;
      return;
    }
    if (free_a(*p) && free_b(*q) && a_.key(*p, level) == b_.key(*q, level))
      pair(*p, *q);
  }

  void operands(const Op &x, const Op &y, Level level) {
    for (u32 i = 0; i < std::min(x.num_operands(), y.num_operands()); ++i)
      producers(x.operand(i), y.operand(i), level);
    if (x.has(ir::trait::kCommutative) && x.num_operands() >= 2 && y.num_operands() >= 2) {
      producers(x.operand(0), y.operand(1), level);
      producers(x.operand(1), y.operand(0), level);
    }
    for (u32 r = 0; r < std::min(x.num_regions(), y.num_regions()); ++r)
      if (const Op *s = x.region(r)->back(), *t = y.region(r)->back(); s && t)
        for (u32 i = 0; i < std::min(s->num_operands(), t->num_operands()); ++i)
          producers(s->operand(i), t->operand(i), level);
  }

  void outputs(Level level) {
    const Op *x = a_.graph().return_op(), *y = b_.graph().return_op();
    if (!x || !y)
      return;
    const auto &b_outputs = b_.graph().outputs();
    boost::unordered_flat_map<std::string_view, u32> by_name;
    for (const ir::OutputInfo &o : b_outputs)
      if (o.operand >= 0)
        by_name.try_emplace(o.name, static_cast<u32>(o.operand));
    for (const ir::OutputInfo &o : a_.graph().outputs())
      if (const auto it = by_name.find(o.name); o.operand >= 0 && it != by_name.end())
        producers(x->operand(static_cast<u32>(o.operand)), y->operand(it->second), level);
    for (u32 i = 0; i < std::min(x->num_operands(), y->num_operands()); ++i)
      producers(x->operand(i), y->operand(i), level);
  }

  void users(const Value &x, const Value &y, Level level) {
    std::vector<Keyed> a, b;
    const auto collect = [&](const Value &v, const Side &side, bool of_a,
                             std::vector<Keyed> &into) {
      for (const ir::Use &u : v.uses()) {
        ++out_.work.ops_visited;
        const Op &op = *u.owner();
        if (of_a ? free_a(op) : free_b(op))
          into.push_back({side.key(op, level), side.position(op), u.operand_index()});
      }
    };
    collect(x, a_, true, a);
    if (a.empty())
      return;
    collect(y, b_, false, b);
    const bool of_constant = x.producer() && is_constant(*x.producer());
    for_common_groups(a, b, [&](std::span<const Keyed> s, std::span<const Keyed> t) {
      // Which of several is which is anybody's guess unless there are as many on both sides.
      // A constant shared by many (a shape, a permutation) says nothing about the order of its
      // users.
      if (s.size() != t.size() ? of_constant || level != kOpcode : of_constant && s.size() > 1)
        return;
      for (size_t i = 0; i < std::min(s.size(), t.size()); ++i) {
        const Op &p = *a_.ops()[s[i].position], &q = *b_.ops()[t[i].position];
        if (free_a(p) && free_b(q))
          pair(p, q);
      }
    });
  }

  Alignment out_;
  Side a_;
  Side b_;
  std::deque<const Op *> work_;      // pairs whose operands are to be looked at
  std::deque<const Value *> values_; // pairs whose users are to be looked at
};

} // namespace

bool same_type(ir::Type a, ir::Type b) {
  if (a == b)
    return true;
  if (!a || !b || a.kind() != b.kind() || a.element() != b.element() || a.quant() != b.quant() ||
      a.shape().size() != b.shape().size())
    return false;
  for (size_t i = 0; i < a.shape().size(); ++i)
    if (!(a.shape()[i].is_symbolic() && b.shape()[i].is_symbolic()) &&
        !(a.shape()[i] == b.shape()[i]))
      return false;
  return true;
}

Alignment align(const ir::Graph &a, const ir::Graph &b) { return Aligner(a, b).run(); }

} // namespace chute::toolkit

// cse: merges pure operators with the same opcode, operands, attributes and result types.
//
//   %1 = aten.exp(%x)   %2 = aten.exp(%x)   →   %1 = aten.exp(%x), uses of %2 become uses of %1
//
// Operands of commutative operators count as equal in either order. Constants are equal when they
// view the same bytes, or are small and hold the same bytes (large ones are shared by the writers,
// which hash them anyway). Random operators and operators with regions are left. A region sees only
// its own operators. Operators whose results nothing uses are erased on the way, with what only
// they used.
//
// Cost: one walk, and one hash per operator that can have an equal: one of whose operands nothing
// else uses has none, which shows in the operator alone. Most are such.
#include "ir/walk.h"
#include "pass/erase_unused.h"
#include "pass/pass.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <unordered_map>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::pass {

namespace {

using ir::Attr;
using ir::Op;

constexpr size_t kSmallConstant = 4096;

bool same_constant(const ir::Constant &a, const ir::Constant &b, u64 *hashed) {
  if (&a == &b)
    return true;
  if (a.type != b.type || !a.has_data || !b.has_data)
    return false;
  const bool same_view = a.data == b.data && std::equal(a.strides.begin(), a.strides.end(),
                                                        b.strides.begin(), b.strides.end());
  return same_view || (a.dense_bytes() <= kSmallConstant && same_content(a, b, hashed));
}

class Table {
public:
  Table(WorkCounters &counters, size_t operators)
      : hashed_(&counters.bytes_hashed), compared_(&counters.patterns_tried) {
    heads_.reserve(operators / 2);
    entries_.reserve(operators / 2);
  }

  /// The earlier equal operator, or null after remembering `op`.
  Op *find_or_add(Op &op) {
    const auto [head, fresh] = heads_.try_emplace(hash(op), static_cast<u32>(entries_.size()));
    if (!fresh)
      for (u32 i = head->second; i != kEnd; i = entries_[i].next)
        if (entries_[i].op && equal(*entries_[i].op, op))
          return entries_[i].op;
    entries_.push_back({&op, fresh ? kEnd : head->second});
    head->second = static_cast<u32>(entries_.size() - 1);
    return nullptr;
  }
  /// `op` is about to be erased.
  void forget(const Op &op) {
    if (const auto head = heads_.find(hash(op)); head != heads_.end())
      for (u32 i = head->second; i != kEnd; i = entries_[i].next)
        if (entries_[i].op == &op)
          entries_[i].op = nullptr;
  }

private:
  /// By address: reading ids would touch every producer. Which operator is kept depends on program
  /// order alone, so addresses decide nothing that shows.
  using Operands = boost::container::small_vector<const ir::Value *, 8>;

  static Operands operands(const Op &op) {
    Operands values;
    for (const ir::Use &u : op.operand_uses())
      values.push_back(u.value());
    if (op.has(ir::trait::kCommutative) && values.size() >= 2 &&
        std::less<>()(values[1], values[0]))
      std::swap(values[0], values[1]);
    return values;
  }

  u64 hash(const Op &op) {
    const Operands values = operands(op);
    u64 h = XXH3_64bits_withSeed(values.data(), values.size() * sizeof(values[0]),
                                 ir::index(op.opcode()));
    for (Attr a : op.attrs()) {
      u64 payload = a.payload();
      if (a.kind() == ir::AttrKind::Constant) {
        const ir::Constant &c = *a.as_constant();
        const bool small = c.has_data && c.dense_bytes() <= kSmallConstant;
        // Without data a constant equals itself alone; one chain of all of them would be walked by
        // each.
        payload = small        ? c.hash(hashed_).low
                  : c.has_data ? reinterpret_cast<u64>(c.data)
                               : reinterpret_cast<u64>(&c);
      }
      h = (h ^ payload) * 0x9E3779B97F4A7C15ull + static_cast<u64>(a.kind());
      h ^= h >> 32;
    }
    return h;
  }

  bool equal(const Op &a, const Op &b) {
    ++*compared_;
    if (a.opcode() != b.opcode() || a.num_results() != b.num_results() ||
        a.num_attrs() != b.num_attrs() || operands(a) != operands(b))
      return false;
    for (u32 i = 0; i < a.num_results(); ++i)
      if (a.result(i)->type() != b.result(i)->type())
        return false;
    for (u32 i = 0; i < a.num_attrs(); ++i) {
      const Attr x = a.attr(i), y = b.attr(i);
      if (x == y)
        continue;
      if (x.kind() != ir::AttrKind::Constant || y.kind() != ir::AttrKind::Constant ||
          !same_constant(*x.as_constant(), *y.as_constant(), hashed_))
        return false;
    }
    return true;
  }

  struct IdentityHash {
    using is_avalanching = void;
    size_t operator()(u64 h) const { return h; }
  };
  static constexpr u32 kEnd = ~0u;
  struct Entry {
    Op *op;   // null: erased
    u32 next; // an earlier operator of the same hash
  };
  boost::unordered_flat_map<u64, u32, IdentityHash> heads_;
  std::vector<Entry> entries_;
  u64 *hashed_;
  u64 *compared_; // shown as patterns tried: more than rewrites when hashes collide
};

class Merger {
public:
  explicit Merger(PassContext &ctx)
      : ctx_(ctx), graph_(ctx.graph), alone_(ctx.graph.num_op_ids()) {}

  /// False when `op` is erased.
  bool visit(Op &op) {
    if (is_dead(op)) {
      erase_unused(graph_, op, [&](const Op &o) {
        if (&o != &op && !alone_[o.id()])
          table_of(o).forget(o);
      });
      return false;
    }
    constexpr ir::trait::Set kLooked = ir::trait::kPure | ir::trait::kRandom;
    if ((op.traits() & kLooked) != ir::trait::kPure || op.num_regions() || op.num_results() == 0)
      return true;
    for (const ir::Use &u : op.operand_uses())
      if (u.is_only()) {
        alone_[op.id()] = true;
        return true;
      }
    if (ctx_.rewrite.used && *ctx_.rewrite.used >= ctx_.rewrite.rewrite_limit)
      return true;
    Op *earlier = table_of(op).find_or_add(op);
    if (!earlier)
      return true;
    merge(op, *earlier);
    return false;
  }

private:
  Table &table_of(const Op &op) {
    if (op.parent() != region_) {
      region_ = op.parent();
      table_ = &tables_.try_emplace(region_, ctx_.counters, region_->num_ops()).first->second;
    }
    return *table_;
  }

  void merge(Op &op, Op &earlier) {
    for (u32 i = 0; i < op.num_results(); ++i) {
      ir::Value *from = op.result(i), *to = earlier.result(i);
      if (!to->name())
        graph_.set_name(to, from->name());
      // Its only user so far has company now.
      if (to->has_one_use() && from->has_uses())
        if (Op *user = to->first_use()->owner(); alone_[user->id()]) {
          alone_[user->id()] = false;
          table_of(*user).find_or_add(*user);
        }
      graph_.replace_all_uses(from, to);
    }
    graph_.erase(&op);
    ++ctx_.counters.rewrites;
    if (ctx_.rewrite.used)
      ++*ctx_.rewrite.used;
  }

  PassContext &ctx_;
  ir::Graph &graph_;
  std::unordered_map<const ir::Region *, Table> tables_; // references stay; looked up only
  const ir::Region *region_ = nullptr;                   // the one looked up last
  Table *table_ = nullptr;
  std::vector<bool> alone_; // by operator id: seen and in no table, for it had no equal
};

} // namespace

void cse(PassContext &ctx) {
  Merger merger(ctx);
  ir::walk(ctx.graph, [&](Op &op) {
    ++ctx.counters.ops_visited;
    return merger.visit(op);
  });
}

} // namespace chute::pass

// cse: merges pure operators with the same opcode, operands, attributes and result types.
//
//   %1 = aten.exp(%x)   %2 = aten.exp(%x)   →   %1 = aten.exp(%x), uses of %2 become uses of %1
//
// Operands of commutative operators count as equal in either order. Constants are equal when they
// view the same bytes, or are small and hold the same bytes (large ones are shared by the writers,
// which hash them anyway). Random operators and operators with regions are left. A region sees only
// its own operators. Cost: one walk, one hash per operator.
#include "ir/walk.h"
#include "pass/pass.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
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
    heads_.reserve(operators);
    entries_.reserve(operators);
  }

  /// The earlier equal operator, or null after remembering `op`.
  Op *find_or_add(Op &op) {
    auto [head, fresh] = heads_.try_emplace(hash(op), static_cast<u32>(entries_.size()));
    if (!fresh)
      for (u32 i = head->second; i != kEnd; i = entries_[i].next)
        if (equal(*entries_[i].op, op))
          return entries_[i].op;
    entries_.push_back({&op, fresh ? kEnd : head->second});
    head->second = static_cast<u32>(entries_.size() - 1);
    return nullptr;
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
    Op *op;
    u32 next; // an earlier operator of the same hash
  };
  boost::unordered_flat_map<u64, u32, IdentityHash> heads_;
  std::vector<Entry> entries_;
  u64 *hashed_;
  u64 *compared_; // shown as patterns tried: more than rewrites when hashes collide
};

} // namespace

void cse(PassContext &ctx) {
  boost::unordered_flat_map<const ir::Region *, Table> tables;
  ir::walk(ctx.graph, [&](Op &op) {
    ++ctx.counters.ops_visited;
    const ir::OpDef &def = op.def();
    if (!def.has(ir::trait::kPure) || def.has(ir::trait::kRandom) || op.num_regions() ||
        op.num_results() == 0)
      return true;
    if (ctx.rewrite.used && *ctx.rewrite.used >= ctx.rewrite.rewrite_limit)
      return true;
    auto [it, fresh] = tables.try_emplace(op.parent(), ctx.counters, op.parent()->num_ops());
    Op *earlier = it->second.find_or_add(op);
    if (!earlier)
      return true;
    for (u32 i = 0; i < op.num_results(); ++i) {
      if (!earlier->result(i)->name())
        ctx.graph.set_name(earlier->result(i), op.result(i)->name());
      ctx.graph.replace_all_uses(op.result(i), earlier->result(i));
    }
    ctx.graph.erase(&op);
    ++ctx.counters.rewrites;
    if (ctx.rewrite.used)
      ++*ctx.rewrite.used;
    return false;
  });
}

} // namespace chute::pass

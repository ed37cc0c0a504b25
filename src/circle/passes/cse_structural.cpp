// cse-structural: merges operators that compute the same though they are built differently, where
// `cse` needs the same operator over the same operands.
//
//   greater(%a, %b), less(%b, %a)                       → one of them (and the or-equal forms)
//   mul(%a, %a), square(%a)                             → one of them
//   add(add(%a, %b), %c), add(%b, add(%c, %a))          → one of them, for integers
//     also MUL, BITWISE_XOR of integers, MINIMUM and MAXIMUM of integers, LOGICAL_AND, LOGICAL_OR
//   exp(reshape(%a)), exp(%a)                           → one EXP and a RESHAPE of it
//     elementwise operators of one tensor, and of one tensor and single numbers
//   chains of all of these: what is merged counts as equal for what follows
//
// Values are the same bit for bit: sums and products of floats are not regrouped, since rounding
// depends on the order, nor minima and maxima of floats, since NaN does. Groups hold operators that
// one operator alone uses and at most kMostLeaves operands. Run after `cse`, which gives equal
// constants one name. No more operators than before: one goes for each RESHAPE that comes. Cost:
// one walk, one hash per operator.
#include "circle/activations.h"
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"
#include "ir/walk.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

using ir::Op;

constexpr size_t kMostLeaves = 32;
constexpr size_t kMostViews = 8;

bool is_integer(Type t) {
  return (t.element() == ElementType::I32 || t.element() == ElementType::I64) && !t.quant();
}

/// Whether the order in which three or more operands are joined makes no difference to any bit.
bool is_associative(const Op &op) {
  const OpCode c = op.opcode();
  if (op.num_operands() != 2 || !op.operand(0) || !op.operand(1) || has_activation(op))
    return false;
  if (c == op::LOGICAL_AND || c == op::LOGICAL_OR)
    return true;
  const bool integers =
      c == op::ADD || c == op::MUL || c == op::BITWISE_XOR || c == op::MINIMUM || c == op::MAXIMUM;
  return integers && is_integer(op.result()->type()) && is_integer(op.operand(0)->type()) &&
         is_integer(op.operand(1)->type());
}

/// The operator that makes `v` for `user` alone, as one more of its kind.
const Op *inner(const Value *v, const Op &user) {
  const Op *p = v->producer();
  return p && p->opcode() == user.opcode() && p->parent() == user.parent() && v->has_one_use() &&
                 p->result()->type().element() == user.result()->type().element() &&
                 is_associative(*p)
             ? p
             : nullptr;
}

/// Whether `op` is the outermost of its group.
bool is_outermost(const Op &op) {
  const Value *v = op.result();
  return !v->has_one_use() || inner(v, *v->first_use()->owner()) != &op;
}

/// What a value lies in the memory of, through views that keep how it is stored.
const Value *viewed(const Value *v) {
  for (size_t i = 0; i < kMostViews; ++i) {
    const Op *p = v->producer();
    if (!p || !is_view(*p) || !stored_alike(p->operand(0)->type(), v->type()))
      return v;
    v = p->operand(0);
  }
  return v;
}

/// Elementwise on one tensor, all else constants of one element: the shape is the tensor's.
const Value *only_tensor(const Op &op) {
  if (!op.has(ir::trait::kElementwise) || op.num_results() != 1)
    return nullptr;
  const Value *only = nullptr;
  for (const ir::Use &u : op.operand_uses()) {
    const Value *v = u.value();
    if (!v)
      return nullptr;
    if (constant_of(v) && has_elements(v->type().shape(), 1) && v->type().rank() <= 1)
      continue;
    if (only && only != v)
      return nullptr;
    only = v;
  }
  return only && only->type().rank() > 0 && same_shape(only->type(), op.result()->type()) &&
                 is_movable(only->type()) && is_movable(op.result()->type())
             ? only
             : nullptr;
}

class Table {
public:
  explicit Table(WorkCounters &work) : work_(work) {}

  /// The earlier operator that computes the same, but for the shape; null after remembering `op`.
  Op *find_or_add(Op &op) {
    describe(op);
    const u64 hash = XXH3_64bits(words_.data(), words_.size() * sizeof(u64));
    auto [it, fresh] = heads_.try_emplace(hash, static_cast<u32>(entries_.size()));
    for (u32 i = fresh ? kEnd : it->second; i != kEnd; i = entries_[i].next) {
      ++work_.patterns_tried;
      const Entry &e = entries_[i];
      if (e.size == words_.size() &&
          std::equal(words_.begin(), words_.end(), arena_.begin() + static_cast<i64>(e.begin)))
        return e.op;
    }
    entries_.push_back({&op, arena_.size(), words_.size(), fresh ? kEnd : it->second});
    arena_.insert(arena_.end(), words_.begin(), words_.end());
    it->second = static_cast<u32>(entries_.size() - 1);
    return nullptr;
  }

private:
  static u64 word(const Value *v) { return reinterpret_cast<u64>(v); }

  /// What `op` computes, as words that are equal for equal values. Which operator stays depends on
  /// program order alone, so that addresses decide nothing that shows.
  void describe(Op &op) {
    words_.clear();
    OpCode code = op.opcode();
    Type type = op.result()->type();
    std::vector<u64> operands;
    bool attrs = true, shapeless = false;
    for (const ir::Use &u : op.operand_uses())
      operands.push_back(word(u.value()));
    if (code == op::GREATER || code == op::GREATER_EQUAL) {
      code = code == op::GREATER ? op::LESS : op::LESS_EQUAL;
      std::swap(operands[0], operands[1]);
      attrs = false;
    } else if (code == op::LESS || code == op::LESS_EQUAL) {
      attrs = false;
    } else if (is_associative(op)) {
      operands = leaves(op);
      attrs = false;
    } else if (code == op::MUL && operands[0] == operands[1] && !has_activation(op) &&
               !type.quant() && op.operand(0)->type() == type) {
      code = op::SQUARE;
      operands.pop_back();
      attrs = false;
    } else if (code == op::SQUARE) {
      attrs = false;
    } else if (op.has(ir::trait::kCommutative) && operands.size() >= 2 &&
               operands[1] < operands[0]) {
      std::swap(operands[0], operands[1]);
    }
    if (const Value *tensor = only_tensor(op)) {
      shapeless = true;
      for (u64 &w : operands)
        if (w == word(tensor))
          w = word(viewed(tensor));
    }
    words_.push_back(ir::index(code) | u64{shapeless} << 32 | u64{attrs} << 33);
    words_.push_back(shapeless ? static_cast<u64>(type.element()) : type.id());
    words_.push_back(shapeless ? reinterpret_cast<u64>(type.quant()) : 0);
    words_.insert(words_.end(), operands.begin(), operands.end());
    if (attrs)
      for (const Attr a : op.attrs()) {
        words_.push_back(static_cast<u64>(a.kind()));
        words_.push_back(a.payload());
      }
  }

  /// Operands of the group of which `op` is the outermost, sorted; its own ones otherwise.
  std::vector<u64> leaves(const Op &op) {
    std::vector<u64> out;
    std::vector<const Op *> stack{&op};
    const bool outermost = is_outermost(op);
    while (!stack.empty()) {
      const Op *p = stack.back();
      stack.pop_back();
      for (const ir::Use &u : p->operand_uses()) {
        ++work_.ops_visited;
        const Op *more =
            outermost && out.size() + stack.size() < kMostLeaves ? inner(u.value(), *p) : nullptr;
        if (more)
          stack.push_back(more);
        else
          out.push_back(word(u.value()));
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  struct IdentityHash {
    using is_avalanching = void;
    size_t operator()(u64 h) const { return h; }
  };
  static constexpr u32 kEnd = ~u32{0};
  struct Entry {
    Op *op;
    size_t begin, size; // in arena_
    u32 next;           // an earlier operator of the same hash
  };
  WorkCounters &work_;
  boost::unordered_flat_map<u64, u32, IdentityHash> heads_;
  std::vector<Entry> entries_;
  std::vector<u64> arena_, words_;
};

/// What takes the place of `op`: the earlier result, seen in its shape. Null when the shape can
/// not be stated.
Value *instead_of(ir::Graph &graph, Op &op, Op &earlier) {
  Value *v = earlier.result();
  const Type type = op.result()->type();
  if (v->type() == type)
    return v;
  if (!type.has_static_shape() || !v->type().has_static_shape() ||
      v->type().num_elements() != type.num_elements())
    return nullptr;
  ir::Builder b(graph, *op.parent(), &op);
  b.set_loc(op.loc());
  return make_reshape(b, v, type);
}

} // namespace

void cse_structural(pass::PassContext &ctx) {
  boost::unordered_flat_map<const ir::Region *, Table> tables;
  ir::walk(ctx.graph, [&](Op &op) {
    ++ctx.counters.ops_visited;
    if (!is_circle(op.opcode()) || !op.has(ir::trait::kPure) || op.has(ir::trait::kRandom) ||
        op.num_regions() || op.num_results() != 1 || is_view(op))
      return true;
    if (ctx.rewrite.used && *ctx.rewrite.used >= ctx.rewrite.rewrite_limit)
      return true;
    Op *earlier = tables.try_emplace(op.parent(), ctx.counters).first->second.find_or_add(op);
    Value *same = earlier ? instead_of(ctx.graph, op, *earlier) : nullptr;
    if (!same)
      return true;
    if (!same->name())
      ctx.graph.set_name(same, op.result()->name());
    ctx.graph.replace_all_uses(op.result(), same);
    ctx.graph.erase(&op);
    ++ctx.counters.rewrites;
    if (ctx.rewrite.used)
      ++*ctx.rewrite.used;
    return false;
  });
}

} // namespace chute::circle

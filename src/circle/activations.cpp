#include "circle/activations.h"

#include "circle/ops.h"
#include "ir/sym_table.h"
#include "ir/walk.h"

#include <algorithm>
#include <vector>

namespace chute::circle {

namespace {

using ir::Op;
using ir::Value;
using WorkMemory = boost::unordered_flat_map<const Op *, u64>;

u64 region_peak(const ir::Graph &graph, const ir::Region &region, u64 alignment,
                const WorkMemory &inner, WorkCounters &work) {
  boost::unordered_flat_map<const Value *, u64> left; // uses to come, within the region
  const auto bytes = [&](const Value &v) {
    return aligned_bytes(activation_bytes(graph.context().sym(), v.type()), alignment);
  };
  u64 live = 0;
  const auto start = [&](const Value &v) {
    u64 uses = 0;
    for (const ir::Use &u : v.uses())
      uses += u.owner()->parent() == &region;
    left[&v] = uses;
    live += bytes(v);
  };
  for (const Value *a : region.args())
    start(*a);
  u64 peak = live;
  for (const Op &op : region) {
    if (!is_step(op))
      continue;
    ++work.ops_visited;
    for (const Value &r : op.results())
      start(r);
    const auto own = inner.find(&op);
    peak = std::max(peak, live + (own == inner.end() ? 0 : own->second));
    for (const ir::Use &u : op.operand_uses())
      if (const auto it = u.value() ? left.find(u.value()) : left.end();
          it != left.end() && it->second && --it->second == 0)
        live -= bytes(*u.value());
  }
  return peak;
}

} // namespace

bool is_step(const Op &op) {
  return !op.has(ir::trait::kConstant) && op.opcode() != ir::core_op::state &&
         !op.has(ir::trait::kTerminator);
}

bool is_view(const Op &op) {
  const ir::OpCode c = op.opcode();
  return c == op::RESHAPE || c == op::SQUEEZE || c == op::EXPAND_DIMS;
}

u64 activation_bytes(const ir::SymTable &sym, ir::Type t, bool *dynamic) {
  constexpr u64 kMost = u64{1} << 48;
  if (!t || !t.is_tensor())
    return 0;
  u64 n = 1;
  for (ir::SymInt d : t.shape()) {
    i64 extent = d.is_symbolic() ? 1 : d.value();
    if (d.is_symbolic()) {
      if (dynamic)
        *dynamic = true;
      extent = sym.evaluate(d,
                            [&](ir::SymInt s) -> std::optional<i64> {
                              return std::max<i64>(1, sym.range(s).min);
                            })
                   .value_or(1);
    }
    // Sizes that no memory has are the same to every reader of a report.
    n = __builtin_mul_overflow(n, static_cast<u64>(std::max<i64>(extent, 0)), &n) || n > kMost
            ? kMost
            : n;
  }
  const int bits = ir::element_bits(t.element());
  return bits ? (n * static_cast<u64>(bits) + 7) / 8 : 0;
}

WorkMemory work_memory(const ir::Graph &graph, u64 alignment, WorkCounters &work) {
  std::vector<const Op *> with_regions;
  ir::walk(graph, [&](const Op &op) {
    if (op.num_regions())
      with_regions.push_back(&op);
  });
  WorkMemory out;
  for (size_t i = with_regions.size(); i-- > 0;) { // the innermost first
    u64 peak = 0;
    for (const ir::Region *r : with_regions[i]->regions())
      peak = std::max(peak, region_peak(graph, *r, alignment, out, work));
    out[with_regions[i]] = peak;
  }
  return out;
}

} // namespace chute::circle

#pragma once

#include "ir/graph.h"
#include "support/counters.h"

#include <boost/unordered/unordered_flat_map.hpp>

/// What activations take of memory. `chute plan` and the pass `order-for-memory` count alike.
namespace chute::circle {

/// Alignment of tensors in bytes where nothing else is said.
inline constexpr u64 kActivationAlignment = 64;

constexpr u64 aligned_bytes(u64 bytes, u64 alignment = kActivationAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Bytes of a tensor; symbolic sizes count with the smallest that they allow, and `*dynamic` is set
/// (where given). Sizes that no memory has give 2^48. 0 for what is no tensor.
u64 activation_bytes(const ir::SymTable &sym, ir::Type type, bool *dynamic = nullptr);

/// RESHAPE, SQUEEZE and EXPAND_DIMS: the result lies in the memory of the first operand.
bool is_view(const ir::Op &op);

/// Takes a step of time and memory: neither constant nor variable nor terminator.
bool is_step(const ir::Op &op);

/// What the regions of each operator with regions need at most while it runs, in aligned bytes.
/// Linear in operators and uses; `work.ops_visited` counts them.
boost::unordered_flat_map<const ir::Op *, u64> work_memory(const ir::Graph &graph, u64 alignment,
                                                           WorkCounters &work);

/// Bytes that live at the fullest step at least, whatever order the operators of the body run in:
/// the largest of what one step touches, all inputs, all outputs. Linear.
u64 order_bound(const ir::Graph &graph, WorkCounters &work);

} // namespace chute::circle

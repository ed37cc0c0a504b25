#pragma once

#include "ir/graph.h"
#include "support/ints.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

/// Where the parts of a graph lay in the Circle file that they were read from. A Graph has no place
/// for everything that the format can say (sparsity, calibrated ranges, order of tensors, debug
/// indices, …): the writer takes what the IR does not hold from the file itself, for every value,
/// operator and constant that still is what was read. Passes need not know: ids are never reused,
/// so what they make has no origin and what they leave alone keeps its own.
namespace chute::circle {

inline constexpr u32 kNoOrigin = ~u32{0};

/// One graph's side tables. Numbers of tensors and operators run through the file's subgraphs.
struct GraphOrigin {
  std::vector<u32> tensor;    ///< by Value::id
  std::vector<ir::Type> type; ///< by Value::id, as read
  std::vector<u32> op;        ///< by Op::id
  std::vector<u32> buffer;    ///< by Constant::id
  std::map<const ir::Region *, u32> subgraph;

  template <class T>
  static T at(const std::vector<T> &table, u32 id, T none) {
    return id < table.size() ? table[id] : none;
  }
  u32 tensor_of(const ir::Value &v) const { return at(tensor, v.id(), kNoOrigin); }
  u32 op_of(const ir::Op &o) const { return at(op, o.id(), kNoOrigin); }
  u32 buffer_of(const ir::Constant &c) const { return at(buffer, c.id, kNoOrigin); }
  u32 subgraph_of(const ir::Region &r) const {
    const auto it = subgraph.find(&r);
    return it == subgraph.end() ? kNoOrigin : it->second;
  }
};

struct Origin {
  std::span<const std::byte> bytes; ///< the file, its structure checked
  std::shared_ptr<const void> owner;
  std::vector<u32> first_tensor;   ///< by subgraph, and the total
  std::vector<u32> first_op;       ///< by subgraph, and the total
  std::vector<bool> used;          ///< by tensor: something in a graph stands for it
  std::vector<GraphOrigin> graphs; ///< of Model::graph, then of Model::more
};

} // namespace chute::circle

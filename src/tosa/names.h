#pragma once

#include "ir/graph.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <string>

namespace chute::tosa {

/// Distinct names for the values of a graph: the interface's, then the values' own, then the
/// original nodes'. A name is made when it is first asked for, so the order of questions matters
/// and is the writer's.
class NameTable {
public:
  explicit NameTable(const ir::Graph &graph) : graph_(graph) {}

  /// Gives inputs and outputs their names; ask before any other.
  void interface();
  /// A constant that is used as a tensor and as a shape has two names.
  const std::string &of(const ir::Value *v, bool shape);
  /// The name of an operator's region.
  std::string region(const ir::Op &op, u32 index);

private:
  std::string unique(std::string_view base);

  const ir::Graph &graph_;
  boost::unordered_flat_map<std::string, u32> used_; // name, next suffix
  boost::unordered_flat_map<const ir::Value *, std::string> tensors_, shapes_;
};

} // namespace chute::tosa

#pragma once

#include "ir/graph.h"
#include "support/counters.h"
#include "toolkit/align.h"

#include <string>
#include <vector>

namespace chute::toolkit {

enum class ChangeKind : u8 { Removed, Added, Changed };

/// One thing about an operator or the interface that is not the same.
struct Detail {
  std::string what; ///< "attribute fused_activation_function", "operand 1", "type of result 0", …
  std::string before;
  std::string after;
};

struct Change {
  ChangeKind kind = ChangeKind::Changed;
  std::string op;   ///< operator name, after the change where both have one
  std::string name; ///< of the first result
  std::string module_path;
  i64 position_a = -1; ///< among all operators but constants and returns; -1: not there
  i64 position_b = -1;
  std::vector<Detail> details; ///< Changed: at least one
};

/// Constants of counterparts whose content differs, once per pair.
struct ConstantChange {
  std::string name_a;
  std::string name_b;
  std::string type_a;
  std::string type_b;
  bool comparable = false; ///< same number of elements of a type that is a number
  double max_abs = 0;      ///< largest difference of stored numbers
  i64 differing = 0;       ///< elements
  i64 elements = 0;
};

struct DiffOptions {
  bool names = false; ///< also report tensors of another name
};

struct DiffReport {
  std::vector<Detail> interface; ///< inputs and outputs: number, names, order, types
  std::vector<Change> changes;   ///< in the order of `a`, additions where they stand in `b`
  std::vector<ConstantChange> constants;
  u64 same = 0; ///< operators without any change
  u64 removed = 0;
  u64 added = 0;
  u64 changed = 0;
  u64 operators_a = 0;
  u64 operators_b = 0;
  WorkCounters work;
  bool equal() const { return interface.empty() && changes.empty() && constants.empty(); }
};

/// What differs between two graphs of one Context: operators that only one has, and for
/// counterparts (toolkit/align.h) attributes, operands, types with quantization, constants. Names
/// count in the interface only, unless asked for. Cost as of align(), plus the content of constants
/// that differ.
DiffReport diff(const ir::Graph &a, const ir::Graph &b, const DiffOptions &options = {});

} // namespace chute::toolkit

#pragma once

#include "ir/graph.h"
#include "support/counters.h"

#include <vector>

namespace chute::toolkit {

/// Which operator of one graph is which of another.
struct Alignment {
  std::vector<const ir::Op *> b_of_a; ///< by Op::id of `a`; null: no counterpart
  std::vector<const ir::Op *> a_of_b; ///< by Op::id of `b`
  std::vector<const ir::Value *>
      value_b_of_a;  ///< by Value::id of `a`: results, arguments, constants
  WorkCounters work; ///< ops_visited: operators, operands and uses looked at; bytes_hashed
};

/// Aligns two graphs of one Context by what operators compute and where they stand, not by position
/// or name:
///
///   1. operators whose whole cone of ancestors is equal (opcode, attributes, types, constants'
///      content), those with equal descendants first, and of equal ones the first with the first;
///   2. operators whose whole cone of descendants is equal;
///   3. from pairs that are known (inputs by name, then by position; constants whose content occurs
///      once in both) to producers and users in the same operand positions, first where everything
///      but the neighbours is equal, then with other constants, then with other attributes and
///      types;
///   4. before that last step, operators of one opcode whose names occur once in both.
///
/// So an edit changes the counterparts of nothing before or behind it. O(n log n), where the factor
/// is a sort's; the counters grow in proportion to operators and uses.
Alignment align(const ir::Graph &a, const ir::Graph &b);

/// Whether two types are the same up to the names of symbolic sizes.
bool same_type(ir::Type a, ir::Type b);

} // namespace chute::toolkit

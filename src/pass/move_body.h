#pragma once

#include "ir/graph.h"

#include <span>
#include <vector>

namespace chute::pass {

/// Moves the operators of `from` before `position`, with the region's arguments replaced by
/// `arguments`, one each. Returns what the terminator, which is erased, returned. Cost: what is
/// moved and the uses of the arguments; nothing is copied.
inline std::vector<ir::Value *> move_body(ir::Graph &graph, ir::Region &from,
                                          std::span<ir::Value *const> arguments, ir::Op *position) {
  for (u32 i = 0; i < from.num_args(); ++i)
    graph.replace_all_uses(from.arg(i), arguments[i]);
  std::vector<ir::Value *> returned;
  while (ir::Op *op = from.front()) {
    if (op->opcode() == ir::core_op::ret) {
      for (const ir::Use &use : op->operand_uses())
        returned.push_back(use.value());
      graph.erase(op);
      break;
    }
    graph.move_before(op, position);
  }
  return returned;
}

} // namespace chute::pass

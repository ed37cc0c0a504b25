#pragma once

#include "ir/graph.h"

#include <vector>

namespace chute::ir {

/// Calls `visit(Op&)` for every operator in SSA order, an operator before those of its regions. The
/// visitor may erase the operator it is given (then its regions are not entered) if it returns
/// false; it may insert before it. Keeps its own stack: nesting depth costs no native stack.
template <class Visit>
void walk(Region &region, Visit &&visit) {
  std::vector<Op *> stack; // where to go on behind the regions that are open
  for (Op *op = region.front(); op;) {
    Op *next = op->next();
    Op::prefetch(next);
    bool enter = true;
    if constexpr (std::is_same_v<decltype(visit(*op)), bool>)
      enter = visit(*op);
    else
      visit(*op);
    if (enter && op->num_regions()) {
      if (next)
        stack.push_back(next);
      for (u32 i = op->num_regions(); i-- > 0;)
        if (Op *first = op->region(i)->front())
          stack.push_back(first);
      next = nullptr;
    }
    if (!next && !stack.empty()) {
      next = stack.back();
      stack.pop_back();
    }
    op = next;
  }
}

template <class Visit>
void walk(Graph &graph, Visit &&visit) {
  walk(graph.body(), std::forward<Visit>(visit));
}

/// The same for reading.
template <class Visit>
void walk(const Graph &graph, Visit &&visit) {
  walk(const_cast<Graph &>(graph).body(),
       [&](Op &op) { return visit(static_cast<const Op &>(op)); });
}

} // namespace chute::ir

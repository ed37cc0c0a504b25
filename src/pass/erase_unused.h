#pragma once

#include "pass/rewriter.h"

#include <boost/container/small_vector.hpp>

namespace chute::pass {

/// Erases `op`, which is dead, and everything that only it used and that nothing is lost with.
/// Calls erasing(Op &) before each. What is erased comes before `op` or is `op`, so a walk in order
/// that stands at `op` or behind it goes on. Cost: what is erased.
template <class Erasing>
void erase_unused(ir::Graph &graph, ir::Op &op, Erasing &&erasing) {
  boost::container::small_vector<ir::Op *, 8> dead{&op}, producers;
  while (!dead.empty()) {
    ir::Op *o = dead.back();
    dead.pop_back();
    producers.clear();
    for (const ir::Use &u : o->operand_uses())
      if (ir::Op *p = u.value() ? u.value()->producer() : nullptr) {
        bool known = false;
        for (const ir::Op *q : producers)
          known |= q == p;
        if (!known)
          producers.push_back(p);
      }
    erasing(*o);
    graph.erase(o);
    for (ir::Op *p : producers)
      if (is_dead(*p))
        dead.push_back(p);
  }
}

/// The same for what makes `value`, should that be dead.
inline void erase_if_unused(ir::Graph &graph, const ir::Value *value) {
  ir::Op *p = value ? value->producer() : nullptr;
  if (p && is_dead(*p))
    erase_unused(graph, *p, [](ir::Op &) {});
}

} // namespace chute::pass

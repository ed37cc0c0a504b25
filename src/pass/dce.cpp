// dce: erases pure operators whose results nothing uses, transitively.
//
//   %1 = aten.exp(%x)          (no uses)   →   nothing
//
// Never touches operators with an effect, terminators or in-place writes. Users come after what
// they use, so one walk backwards finds everything: an operator's users have gone when it is
// reached. An operator with regions is looked at before they are entered, and again behind them:
// what they used outside lies before it. Cost: one visit per operator.
#include "pass/pass.h"
#include "pass/rewriter.h"

#include <vector>

namespace chute::pass {

void dce(PassContext &ctx) {
  // The next operator to look at in each region that is open.
  std::vector<ir::Op *> open;
  if (ctx.graph.body().back())
    open.push_back(ctx.graph.body().back());
  while (!open.empty()) {
    ir::Op *op = open.back();
    if (ir::Op *before = op->previous())
      open.back() = before;
    else
      open.pop_back();
    ++ctx.counters.ops_visited;
    if (is_dead(*op)) {
      ctx.graph.erase(op);
      ++ctx.counters.rewrites;
      continue;
    }
    for (ir::Region *region : op->regions())
      if (region->back())
        open.push_back(region->back());
  }
}

} // namespace chute::pass

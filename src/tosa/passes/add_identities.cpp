// tosa-identities: an output that is an input of the program, or that is listed twice, gets a
// tensor of its own.
//
//   (x) → return x, y, y   →   return identity(x), y, identity(y)
//
// A TOSA block names its inputs and outputs; readers expect every name once. Runs last.
#include "ir/builder.h"
#include "tosa/ops.h"
#include "tosa/passes.h"

#include <boost/unordered/unordered_flat_set.hpp>

namespace chute::tosa {

void add_identities(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  ir::Op *ret = graph.return_op();
  if (!ret)
    return;
  boost::unordered_flat_set<const ir::Value *> seen;
  for (u32 i = 0; i < ret->num_operands(); ++i) {
    ++ctx.counters.ops_visited;
    ir::Value *v = ret->operand(i);
    if (!v || !v->type().is_tensor() || (seen.insert(v).second && v->producer()))
      continue;
    ir::Builder b(graph, graph.body(), ret);
    b.set_loc(v->producer() ? v->producer()->loc() : ret->loc());
    graph.set_operand(ret, i, b.create(op::IDENTITY, {v}));
    ++ctx.counters.rewrites;
  }
}

} // namespace chute::tosa

// separate-outputs: an output of the program that operators use as well gets a tensor of its own.
//
//   return x, f(x)   →   return reshape(x, shape of x), f(x)
//
// onert 0.1.0 plans memory by the last operator that uses a tensor, and forgets that outputs are
// read after the last operator: with g(f(x)) in the program, x comes back overwritten. A RESHAPE to
// the shape that the tensor has costs no arithmetic, and no runtime drops it.
//
// Left alone: outputs that nothing else uses, inputs, constants, shapes with two dimensions known
// only at run time. Runs last: simplify-views would remove what it adds.
#include "circle/ops.h"
#include "circle/passes.h"
#include "circle/passes/match.h"

#include "ir/builder.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::circle {

namespace {

bool used_by_operators(const ir::Value &v, const ir::Op &ret) {
  for (const ir::Use &u : v.uses())
    if (u.owner() != &ret)
      return true;
  return false;
}

int symbolic_dims(ir::Type type) {
  int n = 0;
  for (ir::SymInt d : type.shape())
    n += d.is_symbolic();
  return n;
}

} // namespace

void separate_outputs(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  ir::Op *ret = graph.return_op();
  if (!ret)
    return;
  boost::unordered_flat_map<const ir::Value *, bool> in_use; // a value may be returned often
  for (u32 i = 0; i < ret->num_operands(); ++i) {
    ++ctx.counters.ops_visited;
    ir::Value *v = ret->operand(i);
    const ir::Op *producer = v ? v->producer() : nullptr;
    if (!producer || producer->has(ir::trait::kConstant) || !v->type().is_tensor() ||
        symbolic_dims(v->type()) > 1)
      continue;
    const auto [found, is_new] = in_use.try_emplace(v, false);
    if (is_new)
      found->second = used_by_operators(*v, *ret);
    if (!found->second)
      continue;
    ir::Builder b(graph, graph.body(), ret);
    b.set_loc(producer->loc());
    graph.set_operand(ret, i, make_reshape(b, v, v->type()));
    ++ctx.counters.rewrites;
  }
}

} // namespace chute::circle

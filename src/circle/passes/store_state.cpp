// store-state: what a program writes to its buffers is written into Circle's variable tensors by
// operators of its own, after everything that reads them.
//
//   s = core.state …; return f(x, s), g(x, s) → s
//     → return f(x, s), reshape(g(x, s), shape of s) → s
//
// The writer gives such a RESHAPE the variable itself as its result; the order of operators in the
// file is what makes later reads see the new content, so the copies come last. A value that is
// itself a variable's content is copied twice: with `a, b = b, a` every new content is read before
// any is stored. An output that is a variable's content gets a copy too, or it would show the new
// one.
//
// A variable that nothing reads may have lost its core.state: the writer makes it of the copy,
// which is called as the buffer.
//
// Left alone: copies that are in place already (a file that was read). Runs last: simplify-views
// would remove what it adds. Without written buffers nothing happens.
#include "circle/ops.h"
#include "circle/passes.h"
#include "circle/passes/match.h"

#include "ir/builder.h"
#include "ir/context.h"

#include <algorithm>
#include <vector>

namespace chute::circle {

namespace {

bool is_state(const ir::Value *v) {
  return v && v->producer() && v->producer()->opcode() == ir::core_op::state;
}

/// Whether `v` is a copy that the writer can give the variable's place.
bool is_store(const ir::Value *v) {
  const ir::Op *p = v->producer();
  return p && p->opcode() == op::RESHAPE && !is_state(p->operand(0)) &&
         p->operand(0)->type() == v->type() && v->has_one_use();
}

ir::Value *copy(ir::Graph &graph, ir::Value *v, ir::Op *ret) {
  ir::Builder b(graph, graph.body(), ret);
  b.set_loc(v->producer() ? v->producer()->loc() : ret->loc());
  return make_reshape(b, v, v->type());
}

} // namespace

void store_state(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  ir::Op *ret = graph.return_op();
  const auto writes = [](const ir::OutputInfo &o) {
    return o.kind == ir::OutputKind::BufferMutation && o.operand >= 0;
  };
  if (!ret || std::ranges::none_of(graph.outputs(), writes))
    return;
  const auto replace = [&](i32 operand, ir::Value *v) {
    graph.set_operand(ret, static_cast<u32>(operand), v);
    ++ctx.counters.rewrites;
  };
  // First whatever is read, then what is stored.
  for (const ir::OutputInfo &o : graph.outputs()) {
    ++ctx.counters.ops_visited;
    if (o.operand < 0)
      continue;
    if (ir::Value *v = ret->operand(static_cast<u32>(o.operand)); is_state(v))
      replace(o.operand, copy(graph, v, ret));
  }
  for (const ir::OutputInfo &o : graph.outputs())
    if (writes(o))
      if (ir::Value *v = ret->operand(static_cast<u32>(o.operand)); !is_store(v)) {
        ir::Value *stored = copy(graph, v, ret);
        graph.set_name(stored, graph.context().intern(o.target));
        replace(o.operand, stored);
      }
}

} // namespace chute::circle

// drop-mutations: a Circle subgraph, or a TOSA block, returns the user's outputs; it has no way to
// write back.
//
//   outputs of kind BufferMutation or InputMutation → removed, with a warning for each
//   core.state                                      → core.constant of its initial value
//
// With the setting state=io (`--state io`) the caller keeps the state instead:
//
//   core.state                                      → an input after the program's own
//   outputs of kind BufferMutation or InputMutation → outputs after the program's own
//
// each called by the buffer's name; what a buffer starts with is then the caller's first value.
//
// With state=variable (`--state variable`) buffers stay: core.state becomes a variable tensor, and
// outputs of kind BufferMutation, after the program's own, what is written into it (store-state).
//
// The note `circle.state.variable` counts them, since few runtimes have any. The warnings
// (`circle.mutation.buffer`, `circle.mutation.input`; with the setting target=tosa
// `tosa.mutation.buffer`, `tosa.mutation.input`) name what is no longer written.
#include "circle/passes.h"

#include "ir/builder.h"
#include "ir/walk.h"

namespace chute::circle {

namespace {

Diagnostic warning(const ir::OutputInfo &o, bool tosa) {
  const bool buffer = o.kind == ir::OutputKind::BufferMutation;
  const std::string file = tosa ? "a TOSA file" : "a Circle file";
  Diagnostic d;
  d.severity = Severity::Warning;
  d.kind = ErrorKind::None;
  if (tosa)
    d.code = buffer ? "tosa.mutation.buffer" : "tosa.mutation.input";
  else
    d.code = buffer ? "circle.mutation.buffer" : "circle.mutation.input";
  d.object = o.target;
  d.message = buffer ? "the program writes this buffer; " + file +
                           " keeps no state, so every run starts from the initial value"
                     : "the program writes this input; " + file + " leaves its inputs alone";
  d.hint =
      buffer ? "--state io makes it an input and an output, --state variable a variable tensor; or "
               "make the new value an output of the model"
             : "--state io makes it an output; or make the new value an output of the model";
  return d;
}

/// For the buffers that become variable tensors, the first of which is `o`.
Diagnostic kept_note(const ir::OutputInfo &o, size_t count) {
  Diagnostic d;
  d.severity = Severity::Note;
  d.kind = ErrorKind::None;
  d.code = "circle.state.variable";
  d.object = o.target;
  d.message = "the program writes this buffer: a variable tensor keeps it from run to run (" +
              std::to_string(count) + (count == 1 ? " buffer)" : " buffers; the first is named)");
  d.hint = "a runtime without variables (onert 0.1.0) refuses the file: --state io makes inputs "
           "and outputs of buffers, --state drop lets every run start from the initial values";
  return d;
}

void expose_state(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  std::vector<ir::Op *> states;
  ir::walk(graph, [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    if (op.opcode() == ir::core_op::state)
      states.push_back(&op);
  });
  for (ir::Op *op : states) {
    ir::InputInfo in;
    in.name = std::string(op->attr("name").as_string());
    in.kind = ir::InputKind::State;
    in.value = graph.add_argument(graph.body(), op->result()->type(), op->result()->name());
    graph.replace_all_uses(op->result(), in.value);
    graph.inputs().push_back(std::move(in));
    graph.erase(op);
    ++ctx.counters.rewrites;
  }
  std::vector<ir::OutputInfo> own, state;
  for (ir::OutputInfo &o : graph.outputs()) {
    const bool written =
        o.kind == ir::OutputKind::BufferMutation || o.kind == ir::OutputKind::InputMutation;
    if (written) {
      o.name = o.target;
      o.kind = ir::OutputKind::User;
    }
    (written ? state : own).push_back(std::move(o));
  }
  own.insert(own.end(), state.begin(), state.end());
  graph.outputs() = std::move(own);
}

/// Replaces the content of buffers by what they start with.
void freeze_state(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  const auto freeze = [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    if (op.opcode() != ir::core_op::state)
      return true;
    ir::Builder b(graph, *op.parent(), &op);
    b.set_loc(op.loc());
    ir::Value *c = b.constant(op.attr("value").as_constant(), op.result()->name());
    graph.replace_all_uses(op.result(), c);
    graph.erase(&op);
    ++ctx.counters.rewrites;
    return false;
  };
  if (graph.count(ir::core_op::state))
    ir::walk(graph, freeze);
}

/// A variable tensor is called as its buffer.
void name_state(pass::PassContext &ctx) {
  ir::walk(ctx.graph, [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    if (op.opcode() == ir::core_op::state)
      ctx.graph.set_name(op.result(), ctx.graph.context().intern(op.attr("name").as_string()));
  });
}

} // namespace

void drop_mutations(pass::PassContext &ctx) {
  const auto target = ctx.settings.find("target");
  const bool tosa = target != ctx.settings.end() && target->second == "tosa";
  const auto setting = ctx.settings.find("state");
  const std::string_view state =
      setting == ctx.settings.end() ? std::string_view() : setting->second;
  if (state == "io")
    return expose_state(ctx);
  const bool keeps = state == "variable";
  if (keeps)
    name_state(ctx);
  else
    freeze_state(ctx);

  ir::Graph &graph = ctx.graph;
  ir::Op *ret = graph.return_op();
  std::vector<ir::OutputInfo> kept, written;
  for (const ir::OutputInfo &o : graph.outputs()) {
    const bool buffer = o.kind == ir::OutputKind::BufferMutation;
    if (buffer && keeps)
      written.push_back(o);
    else if (buffer || o.kind == ir::OutputKind::InputMutation)
      ctx.diagnostics.add(warning(o, tosa));
    else
      kept.push_back(o);
  }
  if (kept.size() == graph.outputs().size())
    return;
  if (!written.empty())
    ctx.diagnostics.add(kept_note(written.front(), written.size()));
  kept.insert(kept.end(), written.begin(), written.end());
  std::vector<ir::Value *> values;
  for (ir::OutputInfo &o : kept) {
    if (o.operand < 0)
      continue;
    values.push_back(ret->operand(static_cast<u32>(o.operand)));
    o.operand = static_cast<i32>(values.size()) - 1;
  }
  graph.outputs() = std::move(kept);
  ir::Builder b(graph, graph.body(), ret);
  b.set_loc(ret->loc());
  b.ret(values);
  graph.erase(ret);
}

} // namespace chute::circle

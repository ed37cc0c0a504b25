// tosa-io-layout: inputs and outputs of rank 4 in channels-last order, when that is asked for.
//
//   (%x: f32[1,3,8,8]) … return %y   ->   (%x: f32[1,8,8,3]) TRANSPOSE … TRANSPOSE return
//
// The transposes meet those around convolutions and cancel (tosa-sink-layouts), so a network of
// convolutions has none left.
//
// Setting: io_layout, nchw (the default: as the program has it) or nhwc.
#include "tosa/passes.h"
#include "tosa/passes/match.h"

namespace chute::tosa {

namespace {

constexpr i64 kToNchw[] = {0, 3, 1, 2}, kToNhwc[] = {0, 2, 3, 1};
constexpr int kImageRank = 4;

Value *transpose(ir::Builder &b, Value *x, std::span<const i64> perm) {
  const SymDims perms(perm.begin(), perm.end());
  const ir::NamedAttr attr{"perms", b.context().ints_attr(perms)};
  const Type type = pass::permuted_type(b.context(), x->type(), perm);
  return b.create_typed(op::TRANSPOSE, std::span(&x, 1), std::span(&attr, 1), std::span(&type, 1))
      ->result();
}

bool is_image(const Value *v) {
  return v && v->type().is_tensor() && v->type().rank() == kImageRank;
}

} // namespace

void io_layout(pass::PassContext &ctx) {
  const auto layout = ctx.settings.find("io_layout");
  if (layout == ctx.settings.end() || layout->second != "nhwc")
    return;
  ir::Graph &graph = ctx.graph;
  for (const ir::InputInfo &in : graph.inputs()) {
    ++ctx.counters.ops_visited;
    Value *x = in.value;
    if (!is_image(x))
      continue;
    ir::Builder b(graph, graph.body(), graph.body().front());
    std::vector<ir::Use *> uses;
    for (ir::Use &u : x->uses())
      uses.push_back(&u);
    graph.set_type(x, pass::permuted_type(graph.context(), x->type(), kToNhwc));
    if (uses.empty())
      continue;
    Value *as_before = transpose(b, x, kToNchw);
    for (ir::Use *u : uses)
      graph.set_operand(u->owner(), u->operand_index(), as_before);
    ++ctx.counters.rewrites;
  }
  Op *ret = graph.return_op();
  for (u32 i = 0; ret && i < ret->num_operands(); ++i) {
    ++ctx.counters.ops_visited;
    if (!is_image(ret->operand(i)))
      continue;
    ir::Builder b(graph, graph.body(), ret);
    graph.set_operand(ret, i, transpose(b, ret->operand(i), kToNhwc));
    ++ctx.counters.rewrites;
  }
}

} // namespace chute::tosa

// What enters and leaves COND_IF and WHILE_LOOP is stored as integers:
//
//   quantize(COND_IF(c, dequantize(x)))  ->  COND_IF(c, x), each branch dequantizes and quantizes
//
// What a loop carries keeps one grid from round to round: the coarser one of those of its first
// value and of its body's result.
#include "tosa/quant/fold.h"

#include "quant/params.h"

namespace chute::tosa {

namespace {

Grid grid_of_stored(const Stored &s) {
  const auto whole = quant::range_of(s.element());
  return {s.scale, s.zero_point, whole ? whole->min : 0, whole ? whole->max : 0, s.element()};
}

/// An argument becomes stored; what used the real one uses its dequantization.
void store_argument(ir::Graph &graph, ir::Region &region, u32 index, const Grid &g, ir::LocId loc) {
  Value *arg = region.arg(index);
  const ir::Type real = arg->type();
  ir::Builder b(graph, region, region.front());
  b.set_loc(loc);
  graph.set_type(arg, graph.context().tensor_type(g.element, real.shape()));
  if (!arg->has_uses())
    return;
  std::vector<ir::Use *> uses;
  for (ir::Use &u : arg->uses())
    uses.push_back(&u);
  Value *dequantized = dequantize_by(b, arg, g);
  for (ir::Use *u : uses)
    graph.set_operand(u->owner(), u->operand_index(), dequantized);
}

/// The grid that every use of `v` rounds to.
std::optional<Grid> common_grid(const Value *v) {
  std::optional<Grid> grid;
  for (const ir::Use &u : v->uses()) {
    const auto g = grid_of(*u.owner());
    if (!g || (grid && (g->scale != grid->scale || g->zero_point != grid->zero_point ||
                        g->element != grid->element)))
      return std::nullopt;
    grid = g;
  }
  return grid;
}

/// Each region quantizes what it returns for result `index`; the result is stored.
void store_result(ir::Graph &graph, ir::Op &op, u32 index, ir::Region &region, const Grid &g) {
  ir::Op *ret = region.back();
  ir::Builder b(graph, region, ret);
  b.set_loc(op.loc());
  graph.set_operand(ret, index, quantize_by(b, ret->operand(index), g));
}

bool branches(ir::Op &op, pass::Rewriter &rw) {
  ir::Graph &graph = rw.graph();
  bool changed = false;
  for (u32 i = 1; i < op.num_operands(); ++i) {
    const auto s = stored_of(op.operand(i));
    if (!s)
      continue;
    for (ir::Region *r : op.regions())
      store_argument(graph, *r, i - 1, grid_of_stored(*s), op.loc());
    graph.set_operand(&op, i, s->value);
    changed = true;
  }
  for (u32 i = 0; i < op.num_results(); ++i) {
    Value *v = op.result(i);
    if (!is_float(v) || !v->has_uses())
      continue;
    const auto g = common_grid(v);
    if (!g)
      continue;
    for (ir::Region *r : op.regions())
      store_result(graph, op, i, *r, *g);
    graph.set_type(v, graph.context().tensor_type(g->element, v->type().shape()));
    std::vector<ir::Op *> quantizers;
    for (const ir::Use &u : v->uses())
      quantizers.push_back(u.owner());
    for (ir::Op *q : quantizers) {
      graph.replace_all_uses(q->result(), v);
      graph.erase(q);
    }
    changed = true;
  }
  return changed;
}

bool loop(ir::Op &op, pass::Rewriter &rw) {
  ir::Graph &graph = rw.graph();
  bool changed = false;
  ir::Region &body = *op.region(1);
  for (u32 i = 0; i < op.num_operands() && i < op.num_results(); ++i) {
    const auto first = stored_of(op.operand(i)), next = stored_of(body.back()->operand(i));
    if (!first && !next)
      continue;
    if (!is_float(op.result(i)))
      continue;
    const Grid g = grid_of_stored(!next || (first && first->scale >= next->scale) ? *first : *next);
    ir::Builder before = rw.before(op);
    graph.set_operand(&op, i, quantize_by(before, op.operand(i), g));
    for (ir::Region *r : op.regions())
      store_argument(graph, *r, i, g, op.loc());
    store_result(graph, op, i, body, g);
    Value *result = op.result(i);
    std::vector<ir::Use *> uses;
    for (ir::Use &u : result->uses())
      uses.push_back(&u);
    graph.set_type(result, graph.context().tensor_type(g.element, result->type().shape()));
    if (!uses.empty()) {
      ir::Builder after(graph, *op.parent(), op.next());
      after.set_loc(op.loc());
      Value *real = dequantize_by(after, result, g);
      for (ir::Use *u : uses)
        graph.set_operand(u->owner(), u->operand_index(), real);
    }
    changed = true;
  }
  return changed;
}

} // namespace

void add_quantized_control_rules(pass::PatternSet &set) {
  set.add("store-in-branches", {op::COND_IF}, branches);
  set.add("store-in-loops", {op::WHILE_LOOP}, loop);
}

} // namespace chute::tosa

// hoist-quantize: moves QUANTIZE from the result of an operator that only moves elements to what it
// moves, where the arithmetic that made the elements can take it up (pass fold-quantize).
//
//   quantize(reshape(x)) → reshape(quantize(x))
//
// Matches one scale per tensor and operators with one operand of elements (reshape, transpose,
// slice, pad, gather, split, pooling by maximum …) all of whose results' uses quantize alike.
// Values stay what they were: rounding commutes with moving. Left alone: an operand with other
// users that no integer arithmetic makes (a graph input of which parts are quantized), since each
// part would quantize the whole.
//
// Cost: one walk from the last operator to the first; a QUANTIZE moves through a chain of such
// operators as the walk passes them.
#include "circle/passes.h"
#include "circle/quantize/storage.h"
#include "ir/walk.h"
#include "quant/ledger.h"
#include "quant/params.h"

namespace chute::circle {

namespace {

using ir::Op;
using ir::Value;

/// The only operand that holds elements, or -1.
int element_operand(const Op &op, const RoleInfo &role) {
  if ((role.role != Role::Move && role.role != Role::Order) || role.data == kAllOperands ||
      op.opcode() == op::RELU)
    return -1;
  int found = -1;
  for (u32 i = 0; i < op.num_operands(); ++i)
    if (is_data(role, i) && op.operand(i)) {
      if (found >= 0)
        return -1;
      found = static_cast<int>(i);
    }
  return found;
}

bool made_from_stored(const Value *v) {
  const Op *p = v->producer();
  if (!p)
    return false;
  for (const ir::Use &u : p->operand_uses())
    if (stored(u.value()))
      return true;
  return false;
}

/// The one type to which all real results are quantized; invalid when they are not.
ir::Type quantized_alike(const Op &op) {
  ir::Type element;
  for (const Value &v : op.results()) {
    if (!v.has_uses() && is_real(&v) && op.num_results() > 1)
      continue;
    const ir::Type t = is_real(&v) ? common_quantization(&v) : ir::Type();
    if (!t || !quant::is_per_tensor(t) ||
        (element && (element.element() != t.element() || element.quant() != t.quant())))
      return {};
    element = t;
  }
  return element;
}

void hoist(ir::Graph &graph, Op &move, u32 operand, ir::Type stored_as) {
  ir::Context &ctx = graph.context();
  Value *x = move.operand(operand);
  const ir::Type type = quant::stored_type(ctx, x->type(), stored_as.element(), stored_as.quant());
  graph.set_operand(&move, operand, make_quantize(graph, move, x, type));
  for (Value &v : move.results()) {
    graph.set_type(&v, quant::stored_type(ctx, v.type(), stored_as.element(), stored_as.quant()));
    for (ir::Use &u : v.uses()) {
      Op *q = u.owner();
      if (v.name().id == 0 || q->result()->name())
        graph.set_name(&v, q->result()->name());
      if (quant::Ledger *ledger = quant::Ledger::active())
        ledger->moved(q->result(), &v);
      graph.replace_all_uses(q->result(), &v);
      graph.erase(q);
    }
  }
}

void visit(ir::Graph &graph, ir::Region &region, pass::PassContext &ctx,
           std::vector<ir::Region *> &inner) {
  for (Op *op = region.back(), *previous = nullptr; op; op = previous) {
    ++ctx.counters.ops_visited;
    inner.insert(inner.end(), op->regions().begin(), op->regions().end());
    if (const RoleInfo role = role_of(*op); role.role != Role::None) {
      const int k = element_operand(*op, role);
      const ir::Type t =
          k >= 0 && is_real(op->operand(static_cast<u32>(k))) ? quantized_alike(*op) : ir::Type();
      if (t) {
        const Value *x = op->operand(static_cast<u32>(k));
        if (!stored(x) && (x->has_one_use() || made_from_stored(x))) {
          hoist(graph, *op, static_cast<u32>(k), t);
          ++ctx.counters.rewrites;
        }
      }
    }
    previous = op->previous();
  }
}

} // namespace

void hoist_quantize(pass::PassContext &ctx) {
  std::vector<ir::Region *> regions{&ctx.graph.body()};
  while (!regions.empty()) {
    ir::Region *r = regions.back();
    regions.pop_back();
    visit(ctx.graph, *r, ctx, regions);
  }
}

} // namespace chute::circle

// cond and while_loop to COND_IF and WHILE_LOOP. Their regions move to the new operator and are
// lowered where they are.
#include "tosa/legalize/control.h"

#include "aten/quantization.h"
#include "ir/walk.h"
#include "tosa/legalize/emit.h"

namespace chute::tosa {

namespace a = aten::op;

namespace {

/// A constant, or the weights that a quantize or dequantize operator makes of some.
bool is_constant_expression(const Value *v) {
  const ir::Op *p = v ? v->producer() : nullptr;
  if (!p || constant_of(v))
    return p != nullptr;
  if (!aten::has_affine_form(p->opcode()))
    return false;
  for (const ir::Use &u : p->operand_uses())
    if (u.value() && !constant_of(u.value()))
      return false;
  return true;
}

Value *copied(ir::Builder &b, const ir::Op &p) {
  if (const ir::Constant *c = constant_of(p.result()))
    return b.constant(c);
  std::vector<Value *> operands;
  for (const ir::Use &u : p.operand_uses())
    operands.push_back(u.value() ? b.constant(constant_of(u.value())) : nullptr);
  std::vector<NamedAttr> attrs;
  for (size_t i = 0; i < p.def().attrs.size(); ++i)
    attrs.push_back({p.def().attrs[i].name, p.attr(static_cast<u32>(i))});
  const Type type = p.result()->type();
  return b.create_typed(p.opcode(), operands, attrs, std::span(&type, 1))->result();
}

} // namespace

void localize_constants(ir::Graph &graph) {
  ir::walk(graph, [&](ir::Op &op) {
    if (op.opcode() != a::ho_cond && op.opcode() != a::ho_while_loop)
      return;
    const bool loop = op.opcode() == a::ho_while_loop;
    // What a loop carries changes from round to round.
    const u32 first = op.segment(1).first;
    for (u32 i = first; i < op.num_operands(); ++i) {
      if (!is_constant_expression(op.operand(i)))
        continue;
      for (ir::Region *r : op.regions()) {
        const u32 at = loop ? i : i - first;
        if (at >= r->num_args() || r->empty() || !r->arg(at)->has_uses())
          continue;
        ir::Builder b(graph, *r, r->front());
        b.set_loc(op.operand(i)->producer()->loc());
        graph.replace_all_uses(r->arg(at), copied(b, *op.operand(i)->producer()));
      }
    }
  });
}

namespace {

/// A region with the operators of `from`; its terminator also returns `extra` trailing arguments.
ir::Region *moved(ir::Graph &graph, ir::Region &from, u32 extra) {
  ir::Region *to = graph.create_region();
  for (Value *v : from.args())
    graph.replace_all_uses(v, graph.add_argument(*to, v->type(), v->name()));
  ir::Op *old = from.back();
  std::vector<Value *> returned;
  for (u32 i = 0; i < old->num_operands(); ++i)
    returned.push_back(old->operand(i));
  for (u32 i = to->num_args() - extra; i < to->num_args(); ++i)
    returned.push_back(to->arg(i));
  ir::Builder b(graph, *to);
  b.set_loc(old->loc());
  ir::Op *ret = b.ret(returned);
  while (from.front() != old)
    graph.move_before(from.front(), ret);
  return to;
}

bool lower_control(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  if (!has_static_types(e))
    return false;
  const bool loop = op.opcode() == a::ho_while_loop;
  for (ir::Region *r : op.regions())
    if (r->empty() || op.num_regions() != 2 || (!loop && r->num_args() + 1 != op.num_operands()))
      return e.unsupported("without both of its regions") != nullptr;
  std::vector<Value *> operands;
  std::vector<Type> types;
  for (u32 i = 0; i < op.num_operands(); ++i)
    operands.push_back(op.operand(i));
  for (const Value &v : op.results())
    types.push_back(v.type());
  u32 extra = 0;
  if (loop) {
    const ir::Op::Segment more = op.segment(1);
    extra = more.count;
    for (u32 i = 0; i < extra; ++i)
      types.push_back(op.operand(more.first + i)->type());
  } else {
    operands[0] = e.as_bool(operands[0]);
  }
  for (u32 i = static_cast<u32>(operands.size()); !loop && i-- > 1;) {
    // What neither branch uses.
    if (op.region(0)->arg(i - 1)->has_uses() || op.region(1)->arg(i - 1)->has_uses())
      continue;
    operands.erase(operands.begin() + i);
    for (ir::Region *r : op.regions())
      rw.graph().erase_argument(*r, i - 1);
  }
  // The condition of a loop returns a bool only.
  ir::Region *regions[] = {moved(rw.graph(), *op.region(0), 0),
                           moved(rw.graph(), *op.region(1), extra)};
  ir::Op *made =
      rw.before(op).create_typed(loop ? op::WHILE_LOOP : op::COND_IF, operands, {}, types, regions);
  std::vector<Value *> results;
  for (u32 i = 0; i < op.num_results(); ++i)
    results.push_back(made->result(i));
  rw.replace(op, results);
  return true;
}

} // namespace

void add_control_rules(pass::PatternSet &set) {
  set.add("control-flow", {a::ho_cond, a::ho_while_loop}, lower_control);
}

} // namespace chute::tosa

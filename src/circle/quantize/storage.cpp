#include "circle/quantize/storage.h"

#include "quant/params.h"

namespace chute::circle {

using ir::Op;
using ir::Value;

namespace {
bool is_storage(ir::Type t) { return quant::is_affine(t) || quant::is_mx(t); }
} // namespace

Value *stored(const Value *v) {
  const Op *p = v ? v->producer() : nullptr;
  if (!p || p->opcode() != op::DEQUANTIZE || !is_storage(p->operand(0)->type()))
    return nullptr;
  return p->operand(0);
}

bool is_quantize(const Op &op) {
  return op.opcode() == op::QUANTIZE && is_storage(op.result()->type());
}

bool only_quantized(const Value *v) {
  for (const ir::Use *u = v->first_use(); u; u = u->next())
    if (!is_quantize(*u->owner()))
      return false;
  return v->has_uses();
}

ir::Type common_quantization(const Value *v) {
  ir::Type type;
  for (const ir::Use *u = v->first_use(); u; u = u->next()) {
    if (!is_quantize(*u->owner()))
      return {};
    const ir::Type t = u->owner()->result()->type();
    if (type && t != type)
      return {};
    type = t;
  }
  return type;
}

Value *make_quantize(ir::Graph &graph, Op &position, Value *v, ir::Type type) {
  ir::Builder b(graph, *position.parent(), &position);
  b.set_loc(position.loc());
  return b.create_typed(op::QUANTIZE, std::span(&v, 1), {}, std::span(&type, 1))->result();
}

Value *dequantize_uses(ir::Graph &graph, Value *v) {
  Op *p = v->producer();
  ir::Builder b(graph, *p->parent(), p->next());
  b.set_loc(p->loc());
  const ir::Type real = graph.context().tensor_type(ir::ElementType::F32, v->type().shape());
  // Made over another value first: replacing the uses of `v` must not reach its own operand.
  Value *other = p->operand(0);
  Op *d = b.create_typed(op::DEQUANTIZE, std::span(&other, 1), {}, std::span(&real, 1));
  graph.replace_all_uses(v, d->result());
  graph.set_operand(d, 0, v);
  return d->result();
}

} // namespace chute::circle

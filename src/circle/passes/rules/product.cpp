#include "circle/passes/rules/product.h"

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

Product product_of(Op &root) {
  Product out;
  boost::container::small_vector<Op *, 6> open{&root};
  while (!open.empty()) {
    Op *op = open.back();
    open.pop_back();
    if (has_activation(*op) || !is_f32(op->result())) {
      out.valid = false;
      return out;
    }
    for (u32 i = 0; i < 2; ++i) {
      Value *v = op->operand(i);
      const bool divides = op->opcode() == op::DIV && i == 1;
      if (const std::optional<double> n = real_splat(v)) {
        out.number *= divides ? 1 / *n : *n;
        continue;
      }
      Op *p = v->producer();
      const bool inner =
          p && v->has_one_use() &&
          (p->opcode() == op::MUL || (p->opcode() == op::DIV && real_splat(p->operand(1))));
      if (divides || out.values.size() + open.size() >= 5) {
        out.valid = false;
        return out;
      }
      if (inner)
        open.push_back(p);
      else
        out.values.push_back(v);
    }
  }
  return out;
}

Value *plus_number(const Value *v, double number) {
  const Op *p = made_for_one(v, op::ADD);
  if (!p || has_activation(*p))
    return nullptr;
  for (u32 i = 0; i < 2; ++i) {
    const std::optional<double> n = real_splat(p->operand(i));
    if (n && *n == number)
      return p->operand(1 - i);
  }
  return nullptr;
}

Value *scaled_by(const Value *v, double number) {
  Op *p = v->producer();
  if (!p || (p->opcode() != op::MUL && p->opcode() != op::DIV) || !v->has_one_use())
    return nullptr;
  const Product m = product_of(*p);
  return m.valid && m.values.size() == 1 && near_number(m.number, number) ? m.values[0] : nullptr;
}

void erase_towards(Rewriter &rw, Op *op) {
  boost::container::small_vector<Op *, 8> chain{op};
  while (chain.back()->result()->has_one_use()) {
    Op *user = chain.back()->result()->first_use()->owner();
    if (user->num_results() != 1 || user->has(ir::trait::kEffect))
      return;
    chain.push_back(user);
  }
  if (chain.back()->result()->has_uses())
    return;
  for (size_t i = chain.size(); i-- > 0;)
    rw.erase(*chain[i]);
}

} // namespace chute::circle

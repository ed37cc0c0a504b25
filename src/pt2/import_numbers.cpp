// Python numbers that are known only when the program runs, where operators want tensors.
//
// Sizes are expressions, which need no operator. Floats made of them (1 / sqrt(n)) or read out of
// tensors are arithmetic: each becomes a tensor of rank 0 in f64, as Python computes, and is cast
// to what a Python number takes beside the tensors that it meets.

#include "pt2/import.h"

#include "aten/ops.h"
#include "ir/builder.h"

#include <algorithm>

namespace chute::pt2 {

using ir::Attr;
using ir::AttrKind;
using ir::ElementType;

namespace {

namespace op = aten::op;

struct Arithmetic {
  std::string_view target;
  ir::OpCode code;
};

constexpr Arithmetic kArithmetic[] = {
    {"_operator.add", op::add_Tensor},
    {"_operator.sub", op::sub_Tensor},
    {"_operator.mul", op::mul_Tensor},
    {"_operator.truediv", op::div_Tensor},
    {"_operator.pow", op::pow_Tensor_Tensor},
    {"_operator.mod", op::remainder_Tensor},
    {"_operator.neg", op::neg},
    {"_operator.abs", op::abs},
    {"torch._sym_sqrt", op::sqrt},
    {"torch._sym_cos", op::cos},
    {"torch._sym_sin", op::sin},
    {"torch._sym_tan", op::tan},
    {"torch._sym_exp", op::exp},
    {"torch._sym_log2", op::log2},
    {"torch.sym_max", op::maximum},
    {"torch.sym_min", op::minimum},
    {"math.sqrt", op::sqrt},
    {"math.exp", op::exp},
    {"math.log", op::log},
};

} // namespace

ir::Value *Importer::cast(ir::Value *v, ElementType element) {
  if (v->type().element() == element)
    return v;
  ir::Builder builder(graph_, *region_);
  builder.set_loc(loc_);
  return builder.create(op::u_to_copy, {v}, {{"dtype", Attr::of_element(element)}});
}

ir::Value *Importer::float_tensor(const Item &item) {
  const Name *n = find(item.string());
  if (!n || !n->value)
    return nullptr;
  if (n->value->type().is_tensor())
    return n->value;
  const ir::Op *reads = n->value->producer();
  if (!reads || reads->num_operands() != 1 ||
      (reads->opcode() != op::item && reads->opcode() != op::u_local_scalar_dense))
    return nullptr;
  ir::Value *tensor = reads->operand(0);
  if (tensor->type().rank() == 0)
    return tensor;
  ir::Builder builder(graph_, *region_);
  builder.set_loc(loc_);
  return builder.create(op::view, {tensor}, {{"size", ctx_.ints_attr({})}});
}

Importer::Outcome Importer::float_arithmetic(const Decoded &d, const DecodedNode &n,
                                             const Target &t) {
  if (n.num_outputs != 1 || d.outputs[n.first_output].tag != ArgTag::SymFloat)
    return Outcome::Fallback;
  const bool converts = t.name == "torch.sym_float";
  const auto *known = std::ranges::find(kArithmetic, std::string_view(t.name), &Arithmetic::target);
  if (!converts && known == std::end(kArithmetic))
    return Outcome::Fallback;
  Values operands;
  for (u32 i = 0; i < n.num_inputs; ++i) {
    const Item &item = d.inputs[n.first_input + i].value;
    ir::Value *v = item.tag == ArgTag::SymFloat ? float_tensor(item) : nullptr;
    if (!v) {
      const bool number = item.tag == ArgTag::Int || item.tag == ArgTag::Float ||
                          item.tag == ArgTag::SymInt || item.tag == ArgTag::SymFloat;
      Attr a;
      if (!number)
        return Outcome::Fallback;
      if (!sym_attr(item, a))
        return Outcome::Failed;
      if (a.is_none())
        return Outcome::Fallback;
      v = scalar(a, ElementType::F64);
    }
    operands.push_back(cast(v, ElementType::F64));
  }
  const size_t wanted = converts ? 1 : ir::Registry::global().def(known->code).operands.size();
  if (operands.size() != wanted)
    return Outcome::Fallback;
  ir::Value *result = operands[0];
  if (!converts) {
    ir::Builder builder(graph_, *region_);
    builder.set_loc(loc_);
    const std::span<ir::Value *const> all(operands.data(), operands.size());
    result = builder.create(known->code, all);
  }
  return bind(d.outputs[n.first_output].string(), result) ? Outcome::Done : Outcome::Failed;
}

/// Sizes are written among tensors by name, or as numbers.
ir::Value *Importer::flow_operand(const Item &item) {
  Attr a;
  switch (item.tag) {
  case ArgTag::Tensor: {
    const ir::StringId id = ctx_.intern(item.string());
    const Name *n = find(item.string());
    if (const auto it = syms_.find(id.id); it != syms_.end() && (!n || !n->value))
      return size_value(it->second, {});
    return value(item.string());
  }
  case ArgTag::Int:
  case ArgTag::SymInt: return sym_attr(item, a) ? size_value(a, {}) : nullptr;
  case ArgTag::Bool:
  case ArgTag::SymBool: return sym_attr(item, a) ? scalar(a, ElementType::Bool) : nullptr;
  default: bad("pt2.node.argument", "an operand is None"); return nullptr;
  }
}

} // namespace chute::pt2

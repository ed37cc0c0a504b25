#include "tosa/names.h"

#include "ir/context.h"

namespace chute::tosa {

std::string NameTable::unique(std::string_view base) {
  std::string name(base);
  auto [at, fresh] = used_.try_emplace(name, 1);
  while (!fresh) {
    name = std::string(base) + "_" + std::to_string(used_.find(std::string(base))->second++);
    fresh = used_.try_emplace(name, 1).second;
  }
  return name;
}

void NameTable::interface() {
  const auto give = [&](const ir::Value *v, const std::string &name) {
    if (!v || name.empty() || tensors_.contains(v))
      return;
    tensors_.emplace(v, unique(name));
  };
  for (const ir::InputInfo &in : graph_.inputs())
    give(in.value, in.name);
  const ir::Op *ret = graph_.return_op();
  for (const ir::OutputInfo &out : graph_.outputs())
    if (ret && out.operand >= 0 && static_cast<u32>(out.operand) < ret->num_operands())
      give(ret->operand(static_cast<u32>(out.operand)), out.name);
}

const std::string &NameTable::of(const ir::Value *v, bool shape) {
  auto &table = shape ? shapes_ : tensors_;
  if (const auto it = table.find(v); it != table.end())
    return it->second;
  std::string_view base = graph_.context().string(v->name());
  const ir::Op *p = v->producer();
  const bool constant = p && p->opcode() == ir::core_op::constant;
  if (base.empty() && p && !constant)
    base = graph_.locations().node_name(p->loc());
  if (base.empty() && p)
    base = constant ? (shape ? "shape" : "const") : p->name().substr(p->name().find('.') + 1);
  if (base.empty())
    base = "arg";
  return table.emplace(v, unique(base)).first->second;
}

std::string NameTable::region(const ir::Op &op, u32 index) {
  return unique(of(op.num_results() ? op.result() : op.operand(0), false) + "_region_" +
                std::to_string(index));
}

} // namespace chute::tosa

#include "executorch/spec.h"

#include "ir/walk.h"

namespace chute::executorch {

std::string tosa_spec(const ir::Graph &graph) {
  bool reals = false, quantized = false, int16 = false, int4 = false, bf16 = false, flow = false;
  const auto see = [&](const ir::Value &v) {
    if (!v.type().is_tensor())
      return;
    const ir::ElementType e = v.type().element();
    reals |= ir::is_float(e);
    quantized |= e == ir::ElementType::I8 || e == ir::ElementType::I16;
    int16 |= e == ir::ElementType::I16 || e == ir::ElementType::I48;
    int4 |= e == ir::ElementType::I4;
    bf16 |= e == ir::ElementType::BF16;
  };
  for (const ir::InputInfo &in : graph.inputs())
    if (in.value)
      see(*in.value);
  ir::walk(graph, [&](const ir::Op &op) {
    if (op.has(ir::trait::kConstant)) // shifts and zero points of float operators are integers, too
      return;
    flow |= op.num_regions() > 0;
    for (const ir::Value &v : op.results())
      see(v);
  });
  std::string spec = "TOSA-1.0";
  // Integers without reals are what both profiles share; the integer one names them.
  spec += quantized || !reals ? "+INT" : "";
  spec += reals ? "+FP" : "";
  spec += int16 && (quantized || !reals) ? "+int16" : "";
  spec += int4 ? "+int4" : "";
  spec += bf16 ? "+bf16" : "";
  spec += flow ? "+cf" : "";
  return spec;
}

} // namespace chute::executorch

// legalize-tosa: see legalize.h. The families of rules lie beside this file.
#include "tosa/legalize/legalize.h"

#include "aten/quantization.h"
#include "tosa/legalize/control.h"
#include "tosa/legalize/emit.h"

namespace chute::tosa {

const pass::PatternSet &legalize_patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_elementwise_rules(s);
    add_activation_rules(s);
    add_reduction_rules(s);
    add_matmul_rules(s);
    add_conv_rules(s);
    add_pool_rules(s);
    add_norm_rules(s);
    add_movement_rules(s);
    add_indexing_rules(s);
    add_scatter_rules(s);
    add_resize_rules(s);
    add_control_rules(s);
    add_block_scaled_rules(s);
    return s;
  }();
  return set;
}

namespace {

/// What no rule sees: an input that nothing reads but concatenation, which leaves it out; an output
/// that is a constant.
void refuse_empty_interface(pass::PassContext &ctx) {
  const auto look = [&](const Value *v, std::string_view what, const std::string &name) {
    if (!v || !v->type().is_tensor() || !v->type().has_static_shape() ||
        v->type().num_elements() != 0)
      return;
    Diagnostic d;
    d.kind = ErrorKind::Unsupported;
    d.code = "tosa.unsupported";
    d.message = std::string(what) + " '" + name + "' holds nothing: TOSA has no empty tensors";
    ctx.diagnostics.add(std::move(d));
  };
  for (const ir::InputInfo &in : ctx.graph.inputs())
    look(in.value, "input", in.name);
  const ir::Op *ret = ctx.graph.return_op();
  for (const ir::OutputInfo &out : ctx.graph.outputs())
    if (ret && out.operand >= 0)
      if (const Value *v = ret->operand(static_cast<u32>(out.operand)); constant_of(v))
        look(v, "output", out.name);
}

} // namespace

void legalize(pass::PassContext &ctx) {
  localize_constants(ctx.graph);
  LegalizeState state;
  ctx.run(legalize_patterns(), &state);
  refuse_empty_interface(ctx);
  // Quantization is folded when all else is TOSA (tosa-fold-quantize).
  const auto lowered = [](ir::OpCode code) { return is_tosa(code) || aten::has_affine_form(code); };
  pass::report_refusals(ctx.graph, state, lowered, "TOSA", "tosa.unsupported", ctx.diagnostics);
}

} // namespace chute::tosa

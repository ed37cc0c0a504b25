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

void legalize(pass::PassContext &ctx) {
  localize_constants(ctx.graph);
  LegalizeState state;
  ctx.run(legalize_patterns(), &state);
  // Quantization is folded when all else is TOSA (tosa-fold-quantize).
  const auto lowered = [](ir::OpCode code) { return is_tosa(code) || aten::has_affine_form(code); };
  pass::report_refusals(ctx.graph, state, lowered, "TOSA", "tosa.unsupported", ctx.diagnostics);
}

} // namespace chute::tosa

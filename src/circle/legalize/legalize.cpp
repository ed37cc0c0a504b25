// legalize-circle: see legalize.h. The families of rules lie beside this file.
#include "circle/legalize/legalize.h"

#include "circle/legalize/emit.h"
#include "circle/legalize/selection.h"

namespace chute::circle {

const pass::PatternSet &legalize_patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_elementwise_rules(s);
    add_bit_rules(s);
    add_math_rules(s);
    add_reduction_rules(s);
    add_matmul_rules(s);
    add_conv_rules(s);
    add_pool_rules(s);
    add_norm_rules(s);
    add_movement_rules(s);
    add_indexing_rules(s);
    add_selection_rules(s);
    add_scatter_rules(s);
    add_resize_rules(s);
    add_quantize_rules(s);
    add_mx_rules(s);
    add_number_rules(s);
    return s;
  }();
  return set;
}

void legalize(pass::PassContext &ctx) {
  CircleState state;
  state.sizes.collect(ctx.graph);
  ctx.run(legalize_patterns(), static_cast<LegalizeState *>(&state));
  state.sizes.release(ctx.graph);
  pass::report_refusals(ctx.graph, state, is_circle, "Circle", "circle.unsupported",
                        ctx.diagnostics);
}

} // namespace chute::circle

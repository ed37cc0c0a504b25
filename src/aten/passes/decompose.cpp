// decompose: everything that users meet, reduced to the core.
//
// One rule per operator or family (rules/*.cpp), written with Emit. The rules of `normalize` run in
// the same worklist, so that a rule may emit what is convenient. Numerics are PyTorch's own: bodies
// of f16 and bf16 operators run in f32 where PyTorch's decomposition does.
//
// What the core is: passes/core_ops.def; what remains outside of it is reported by `check-core`.
#include "aten/passes/passes.h"
#include "aten/passes/rules.h"
#include "pass/pass.h"

namespace chute::aten {

const pass::PatternSet &decompose_rules() {
  static const pass::PatternSet rules = [] {
    pass::PatternSet set;
    add_normalize_rules(set);
    add_elementwise_rules(set);
    add_activation_rules(set);
    add_movement_rules(set);
    add_reduction_rules(set);
    add_contraction_rules(set);
    add_attention_rules(set);
    add_convolution_rules(set);
    add_pooling_rules(set);
    add_norm_rules(set);
    add_index_rules(set);
    add_creation_rules(set);
    add_resample_rules(set);
    add_custom_rules(set);
    add_recurrent_rules(set);
    add_static_resample_rules(set);
    add_grid_sample_rules(set);
    add_special_rules(set);
    add_fourier_rules(set);
    add_loss_rules(set);
    add_composite_rules(set);
    add_position_rules(set);
    add_mask_rules(set);
    add_scan_rules(set);
    add_scatter_reduce_rules(set);
    add_selection_rules(set);
    add_linear_algebra_rules(set);
    return set;
  }();
  return rules;
}

void decompose_pass(pass::PassContext &ctx) { ctx.run(decompose_rules()); }

} // namespace chute::aten

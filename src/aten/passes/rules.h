#pragma once

#include "pass/rewriter.h"

/// The rules of `normalize` and `decompose`, one function per family (passes/rules/*.cpp). Each
/// rule states the reduction of one operator family to the core; results keep the recorded types.
namespace chute::aten {

// normalize
void add_rename_rules(pass::PatternSet &set);
void add_no_op_rules(pass::PatternSet &set);
void add_scalar_rules(pass::PatternSet &set);
void add_promotion_rules(pass::PatternSet &set);
void add_dim_rules(pass::PatternSet &set);

// decompose
void add_elementwise_rules(pass::PatternSet &set);
void add_activation_rules(pass::PatternSet &set);
void add_movement_rules(pass::PatternSet &set);
void add_reduction_rules(pass::PatternSet &set);
void add_contraction_rules(pass::PatternSet &set);
void add_attention_rules(pass::PatternSet &set);
void add_convolution_rules(pass::PatternSet &set);
void add_pooling_rules(pass::PatternSet &set);
void add_norm_rules(pass::PatternSet &set);
void add_index_rules(pass::PatternSet &set);
void add_creation_rules(pass::PatternSet &set);
void add_resample_rules(pass::PatternSet &set);
void add_custom_rules(pass::PatternSet &set);
void add_recurrent_rules(pass::PatternSet &set);
void add_static_resample_rules(pass::PatternSet &set);
void add_grid_sample_rules(pass::PatternSet &set);
void add_special_rules(pass::PatternSet &set);
void add_fourier_rules(pass::PatternSet &set);
void add_loss_rules(pass::PatternSet &set);
void add_composite_rules(pass::PatternSet &set);
void add_position_rules(pass::PatternSet &set);
void add_mask_rules(pass::PatternSet &set);
void add_scan_rules(pass::PatternSet &set);
void add_scatter_reduce_rules(pass::PatternSet &set);
void add_selection_rules(pass::PatternSet &set);
void add_linear_algebra_rules(pass::PatternSet &set);

} // namespace chute::aten

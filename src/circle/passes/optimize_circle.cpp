// optimize-circle: every family of local rewrites in one worklist, to a common fixed point.
//
// Families feed each other (a squeeze becomes a reshape, which meets another, which leaves two
// transposes side by side), so that one run finds what a sequence of passes finds after several
// rounds. Cost: operators plus changes. The order of families only decides which of two rules that
// fit takes an operator first.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

namespace chute::circle {

void optimize_circle(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_canonical_rules(s);
    add_identity_rules(s);
    add_slice_rules(s);
    add_view_rules(s);
    add_rank_rules(s);
    add_part_view_rules(s);
    add_transpose_rules(s);
    add_transposed_view_rules(s);
    add_layout_region_rules(s);
    add_arithmetic_rules(s);
    add_reduce_rules(s);
    add_channel_rules(s);
    add_linear_rules(s);
    add_activation_rules(s);
    add_composite_rules(s);
    add_sigmoid_rules(s);
    add_legacy_gelu_rules(s);
    add_requantize_rules(s);
    add_table_rules(s);
    add_parallel_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

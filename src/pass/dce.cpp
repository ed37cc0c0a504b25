// dce: erases pure operators whose results nothing uses, transitively.
//
//   %1 = aten.exp(%x)          (no uses)   →   nothing
//
// Never touches operators with an effect, terminators or in-place writes. The rewriter erases dead
// operators on its way, so a run without patterns is this pass. Cost: one visit per operator plus
// one per erased operand.
#include "pass/pass.h"

namespace chute::pass {

void dce(PassContext &ctx) { ctx.run(PatternSet()); }

} // namespace chute::pass

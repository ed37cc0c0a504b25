// narrow-floats: every f64, f16 and bf16 tensor becomes f32, inputs, outputs and constants
// included.
//
// Circle's runtimes compute in f32. Element type attributes (casts, creation) follow. One note
// (`circle.narrowed`) names the inputs and outputs whose type changes. Values outside the range of
// f32 become infinite, as a cast would make them. Runs before legalization.
#include "circle/passes.h"

#include "pass/retype.h"

namespace chute::circle {

namespace {

using ir::ElementType;

ElementType narrowed(ElementType e) {
  return e == ElementType::F64 || e == ElementType::F16 || e == ElementType::BF16 ? ElementType::F32
                                                                                  : e;
}

} // namespace

void narrow_floats(pass::PassContext &ctx) {
  const std::string changed = pass::retype(ctx, narrowed);
  if (changed.empty())
    return;
  Diagnostic d;
  d.severity = Severity::Note;
  d.kind = ErrorKind::None;
  d.code = "circle.narrowed";
  d.message = "these inputs and outputs are f32 in the Circle file: " + changed;
  ctx.diagnostics.add(std::move(d));
}

} // namespace chute::circle

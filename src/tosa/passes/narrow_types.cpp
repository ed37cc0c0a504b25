// narrow-types: i64 tensors become i32 and f64 tensors f32, inputs, outputs and constants included.
//
// TOSA 1.0 has neither. Constants outside of i32 (a "no limit" most often) stop at its bounds, f64
// values outside of f32 become infinite. Element type attributes (casts, creation) follow. One note
// (`tosa.narrowed`) names the inputs and outputs whose type changes. Runs before legalization.
#include "tosa/passes.h"

#include "pass/retype.h"

namespace chute::tosa {

namespace {

using ir::ElementType;

ElementType narrowed(ElementType e) {
  switch (e) {
  case ElementType::I64: return ElementType::I32;
  case ElementType::F64: return ElementType::F32;
  default: return e;
  }
}

} // namespace

void narrow_types(pass::PassContext &ctx) {
  const std::string changed = pass::retype(ctx, narrowed);
  if (changed.empty())
    return;
  Diagnostic d;
  d.severity = Severity::Note;
  d.kind = ErrorKind::None;
  d.code = "tosa.narrowed";
  d.message = "these inputs and outputs are 32 bits wide in the TOSA file: " + changed;
  ctx.diagnostics.add(std::move(d));
}

} // namespace chute::tosa

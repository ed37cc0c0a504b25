#include "aten/ops.h"
#include "aten/passes/passes.h"
#include "circle/ops.h"
#include "circle/passes.h"
#include "cli/command.h"
#include "eval/passes.h"
#include "pass/pass.h"
#include "tosa/ops.h"
#include "tosa/passes.h"

namespace chute::cli {

void register_everything() {
  aten::register_dialect();
  circle::register_dialect();
  tosa::register_dialect();
  pass::register_core_passes();
  aten::register_aten_passes();
  circle::register_circle_passes();
  tosa::register_tosa_passes();
  eval::register_passes();
}

} // namespace chute::cli

#include "aten/ops.h"
#include "cli/command.h"
#include "pass/pass.h"

namespace chute::cli {

void register_everything() {
  aten::register_dialect();
  pass::register_core_passes();
}

} // namespace chute::cli

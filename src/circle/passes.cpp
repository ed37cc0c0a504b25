#include "circle/passes.h"

namespace chute::circle {

void register_circle_passes() {
  static const bool done = [] {
#define PASS(name, function, summary)                                                              \
  pass::PassRegistry::global().add({name, function, summary, "circle"});
#include "circle/passes.def"
#undef PASS
    return true;
  }();
  static_cast<void>(done);
}

} // namespace chute::circle

#include "tosa/passes.h"

namespace chute::tosa {

void register_tosa_passes() {
  static const bool done = [] {
#define PASS(name, function, summary)                                                              \
  pass::PassRegistry::global().add({name, function, summary, "tosa"});
#include "tosa/passes.def"
#undef PASS
    return true;
  }();
  static_cast<void>(done);
}

} // namespace chute::tosa

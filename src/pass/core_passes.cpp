#include "pass/pass.h"

namespace chute::pass {

#define PASS(name, function, summary) void function(PassContext &ctx);
#include "pass/passes.def"
#undef PASS

void register_core_passes() {
  static const bool done = [] {
#define PASS(name, function, summary) PassRegistry::global().add({name, function, summary, "core"});
#include "pass/passes.def"
#undef PASS
    return true;
  }();
  static_cast<void>(done);
}

} // namespace chute::pass

#include "eval/passes.h"

#include "pass/pass.h"

namespace chute::eval {

#define PASS(name, function, summary) void function(pass::PassContext &ctx);
#include "eval/passes.def"
#undef PASS

void register_passes() {
  static const bool done = [] {
#define PASS(name, function, summary)                                                              \
  pass::PassRegistry::global().add({name, function, summary, "core"});
#include "eval/passes.def"
#undef PASS
    return true;
  }();
  static_cast<void>(done);
}

} // namespace chute::eval

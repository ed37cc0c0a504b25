#include "aten/passes/passes.h"

namespace chute::aten {

#define PASS(name, function, summary) void function(pass::PassContext &ctx);
#include "aten/passes.def"
#undef PASS

void register_aten_passes() {
  static const bool done = [] {
#define PASS(name, function, summary)                                                              \
  pass::PassRegistry::global().add({name, function, summary, "aten"});
#include "aten/passes.def"
#undef PASS
    return true;
  }();
  static_cast<void>(done);
}

std::vector<std::string> core_pipeline() {
  return {"functionalize", "normalize", "expand-loops", "decompose"};
}

} // namespace chute::aten

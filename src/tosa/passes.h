#pragma once

#include "pass/pass.h"

namespace chute::tosa {

#define PASS(name, function, summary) void function(pass::PassContext &ctx);
#include "tosa/passes.def"
#undef PASS

/// Adds every pass of this dialect to the registry. Idempotent.
void register_tosa_passes();

} // namespace chute::tosa

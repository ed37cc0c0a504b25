#pragma once

#include "pass/pass.h"

namespace chute::circle {

#define PASS(name, function, summary) void function(pass::PassContext &ctx);
#include "circle/passes.def"
#undef PASS

/// Adds every pass of this dialect to the registry. Idempotent.
void register_circle_passes();

} // namespace chute::circle

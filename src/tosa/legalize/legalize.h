#pragma once

#include "pass/pass.h"

/// legalize-tosa: core ATen (docs/core-aten.md) with static shapes to TOSA operators. What has no
/// lowering is reported, all of it at once (`tosa.unsupported`).
namespace chute::tosa {

const pass::PatternSet &legalize_patterns();
void legalize(pass::PassContext &ctx);

} // namespace chute::tosa

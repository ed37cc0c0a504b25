#pragma once

namespace chute::eval {

/// Adds the passes of src/eval/passes.def to the pass registry. Idempotent.
void register_passes();

} // namespace chute::eval

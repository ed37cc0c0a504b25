#pragma once

#include "pass/pass.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chute::convert {

/// The passes that reduce an imported ATen program to core ATen (docs/core-aten.md).
const std::vector<std::string> &core_aten_pipeline();

/// What `chute run` executes of an archive: core ATen, and arithmetic where quantization has
/// parameters that no type carries. Nothing is refused; the evaluator says what it has no kernel
/// for.
const std::vector<std::string> &executable_pipeline();

/// Whether a pass of circle_pipeline() makes the file smaller or faster only (`--set
/// circle_optimize=false` leaves it out).
bool is_optimization(std::string_view pass);

/// From core ATen to a Circle graph that is ready to be written.
const std::vector<std::string> &circle_pipeline();

/// What passes on the way to TOSA want to know: how files are called in messages, and the sizes
/// that the archive hints at, for `fix-sizes`, which runs first.
void add_tosa_settings(const std::vector<std::pair<std::string, i64>> &size_hints,
                       pass::Settings &settings);

/// From core ATen to a TOSA graph that is ready to be written.
const std::vector<std::string> &tosa_pipeline();

} // namespace chute::convert

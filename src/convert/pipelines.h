#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chute::convert {

/// The passes that reduce an imported ATen program to core ATen (docs/core-aten.md).
const std::vector<std::string> &core_aten_pipeline();

/// Whether a pass of circle_pipeline() makes the file smaller or faster only (`--set
/// circle_optimize=false` leaves it out).
bool is_optimization(std::string_view pass);

/// From core ATen to a Circle graph that is ready to be written.
const std::vector<std::string> &circle_pipeline();

/// From core ATen to a TOSA graph that is ready to be written.
const std::vector<std::string> &tosa_pipeline();

} // namespace chute::convert

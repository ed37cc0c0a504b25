#pragma once

#include "ir/graph.h"

#include <string>

namespace chute::executorch {

/// The TOSA specification that a lowered graph keeps to, as ExecuTorch's Arm backend names it:
/// "TOSA-1.0+FP", "TOSA-1.0+INT+int16", "TOSA-1.0+INT+FP".
std::string tosa_spec(const ir::Graph &graph);

} // namespace chute::executorch

#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"

#include <vector>

/// Result types of Circle operators, recomputed from operands and options: the operators' contract.
/// Each function serves a family of rows in circle/table/*.def.
///
/// Two codes tell failures apart: `circle.contract` (an operand or option does not fit) and
/// `circle.infer.unknown` (the type depends on run-time values, or no rule is known).
namespace chute::circle {

inline constexpr const char *kContractCode = "circle.contract";
inline constexpr const char *kUnknownCode = "circle.infer.unknown";

#define CIRCLE_INFER(name)                                                                         \
  Status infer_##name(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out);
#include "circle/table/infer.inc"
#undef CIRCLE_INFER

} // namespace chute::circle

#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"

#include <vector>

/// Result types of ATen operators, recomputed from operands and attributes by PyTorch's rules
/// (broadcasting, type promotion, shape arithmetic over symbolic dimensions). Each function serves a
/// family of rows in aten/table/*.def.
namespace chute::aten {

/// For operators whose result types only the importer knows: creating one without given types is an
/// error that says so.
Status infer_unset(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out);

} // namespace chute::aten

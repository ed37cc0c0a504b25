#pragma once

#include "ir/op_def.h"

#include <string_view>
#include <vector>

namespace chute::aten {

/// Operands, attributes and results of one operator, read from its PyTorch signature.
struct Schema {
  std::vector<ir::OperandSpec> operands;
  std::vector<ir::AttrSpec> attrs;
  std::vector<ir::ResultSpec> results;
};

/// Reads "(Tensor self, int[2] stride=1, *, bool flag=False) -> (Tensor a, Tensor[] b)". Names view
/// into `text`. Default lists are interned in `ctx`. Operators with two or more variadic operands
/// get a last attribute `segments`. A signature outside the grammar is a fault of the table:
/// checked.
Schema parse_schema(std::string_view text, ir::Context &ctx);

} // namespace chute::aten

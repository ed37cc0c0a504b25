#pragma once

#include "ir/graph.h"
#include "support/result.h"
#include "tosa/ops.h"

#include <flatbuffers/flatbuffers.h>
#include <string>
#include <vector>

/// Attribute tables of the format, driven by the operator table.
namespace chute::tosa {

/// Encodes the attributes of `op`. `regions` are the names of its regions' graphs, in order.
/// Errors: `tosa.write.attribute`.
Result<flatbuffers::Offset<void>> encode_attributes(flatbuffers::FlatBufferBuilder &fbb,
                                                    const ir::Op &op,
                                                    std::span<const std::string> regions);

/// Reads the table of an operator with row `def` whose first operand has element type `element`.
/// Appends one Attr per attribute of the row, and the names of the graphs that it refers to.
/// `table` may be null: every field is absent then. Errors: `tosa.read.attribute`.
Status decode_attributes(const WireDef &def, const flatbuffers::Table *table,
                         ir::ElementType element, ir::Context &ctx, std::vector<ir::Attr> &attrs,
                         std::vector<std::string> &regions);

} // namespace chute::tosa

#pragma once

#include "circle/ops.h"
#include "ir/graph.h"
#include "schema/circle_generated.h"
#include "support/result.h"

#include <vector>

/// Options tables between attributes and bytes, driven by circle/table/options.inc alone: no code
/// knows a particular operator. Internal to reader and writer.
namespace chute::circle {

/// Writes the options of `op` as a table; `subgraphs` are the indices of its regions, in order.
Result<flatbuffers::Offset<void>> encode_options(flatbuffers::FlatBufferBuilder &fbb,
                                                 const OptionsDef &def, const ir::Op &op,
                                                 std::span<const i32> subgraphs);

/// Appends one attribute per field (wire defaults when `table` is null) and the subgraph
/// references. `table` was verified. The error names the field.
Status decode_options(const OptionsDef &def, const flatbuffers::Table *table, ir::Context &ctx,
                      std::vector<ir::Attr> &attrs, std::vector<i32> &subgraphs);

} // namespace chute::circle

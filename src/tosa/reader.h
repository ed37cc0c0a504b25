#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <memory>
#include <span>

namespace chute::tosa {

/// What a TOSA file holds.
struct Model {
  std::unique_ptr<ir::Graph> graph; ///< tosa operators and core.constant
  i32 major = 1;
  i32 minor = 0;
  bool draft = false;
};

/// Reads a TOSA file. `owner` keeps `bytes` alive: constants are views of them where they lie
/// aligned and unpacked. Region `main` (or the first) is the body; regions that operators name
/// become regions of those operators. Dimensions of -1 become symbols. Operators stand in the
/// file's order, which has to define tensors before their use.
///
/// Errors, kind BadInput: `tosa.file.identifier`, `tosa.file.flatbuffer`, `tosa.file.excess`
/// (regions that are called so often that the program is larger than its file),
/// `tosa.read.version`, `tosa.read.structure`, `tosa.read.operator`, `tosa.read.tensor`,
/// `tosa.read.attribute`, `tosa.read.order`, `tosa.read.arity`. Linear in the file's size.
Result<Model> read_model(ir::Context &ctx, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner);

} // namespace chute::tosa

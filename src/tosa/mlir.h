#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <functional>
#include <string>
#include <string_view>

namespace chute::tosa {

/// Prints a graph of tosa operators as a module of MLIR's `tosa` dialect, in the generic form and
/// with the spelling of LLVM 19: shapes and permutations are attributes or constants, zero points
/// are quantization attributes. One function, `main`. Constants of more than a few elements are
/// hexadecimal. Text is handed on piece by piece.
///
/// Errors: kind Unsupported, `tosa.mlir.operator` (an operator that this version of the dialect
/// does not have, shapes known only at run time), `tosa.mlir.type`, `tosa.mlir.no_data`.
Status print_mlir(const ir::Graph &graph, const std::function<Status(std::string_view)> &sink);

/// The same into a file, which appears whole or not at all.
Status write_mlir(const ir::Graph &graph, const std::string &path);

} // namespace chute::tosa

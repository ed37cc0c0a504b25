#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace chute::tosa {

struct WriteOptions {
  /// 1.<minor>; nothing: 1.0 when every operator and type has it, else 1.1.
  std::optional<u8> minor;
  /// Module paths and node names as the operators' locations.
  bool locations = true;
  /// Receives the name of each operator's result and where the operator came from.
  std::vector<std::pair<std::string, ir::LocId>> *names = nullptr;
};

struct WriteStats {
  u64 bytes = 0;
  u64 operators = 0; ///< CONST and CONST_SHAPE included
  u64 constants = 0; ///< CONST and CONST_SHAPE
  u64 constants_shared = 0;
  u64 regions = 0;
  u8 minor = 0;
};

/// Writes a graph of tosa operators (and core.constant, core.return) as a TOSA file.
///
/// Region `main` with one block holds the body; each region of an operator becomes a region and a
/// block of its own, breadth first. A constant becomes a CONST before its first user, a CONST_SHAPE
/// where it is used as a shape; equal ones are written once per block. Names: the interface's, then
/// the values' own, then the original nodes'; a suffix makes them unique. Symbolic dimensions are
/// -1. A newer version than 1.0 is marked as a draft, as its readers expect. The same graph and
/// options give the same bytes.
///
/// Errors: kind Unsupported, `tosa.write.operator` (operators of other dialects, all named),
/// `tosa.write.type`, `tosa.write.no_data`, `tosa.write.capture` (a region uses a value from
/// outside), `tosa.write.version`, `tosa.write.too_large` (2 GiB is the format's limit); kind
/// Failure, `tosa.write.attribute`; kind Output, `file.*`.
Status write(const ir::Graph &graph, const std::string &path, const WriteOptions &options = {},
             WriteStats *stats = nullptr);

/// The same into memory.
Result<std::vector<std::byte>> write_bytes(const ir::Graph &graph, const WriteOptions &options = {},
                                           WriteStats *stats = nullptr);

} // namespace chute::tosa

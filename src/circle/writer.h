#pragma once

#include "ir/graph.h"
#include "support/counters.h"
#include "support/result.h"

#include <string>
#include <utility>
#include <vector>

namespace chute::circle {

struct WriteOptions {
  std::string description = "chute";
  /// Key of the signature that carries the interface's names; empty writes no signature.
  std::string signature_key = "serving_default";
  /// Name of the main subgraph; empty means the graph's.
  std::string subgraph_name;
  /// Largest file with its payload inside the flatbuffer. A larger one keeps the flatbuffer as a
  /// header, followed by the payloads, which Buffer.offset and Buffer.size point to. The format's
  /// own limit is 2 GiB - 1; less is useful in tests.
  u64 inline_limit = (u64{1} << 31) - 1;
  /// Named blobs, in order (schema `metadata`).
  std::vector<std::pair<std::string, std::string>> metadata;
  /// Wait until the file is on the disk before it takes its name.
  bool sync = false;
};

struct WriteStats {
  u64 bytes = 0;
  u64 payload_bytes = 0; ///< of the constants, as stored
  u64 subgraphs = 0;
  u64 operators = 0;
  u64 tensors = 0;
  u64 buffers = 0;
  u64 constants_shared = 0; ///< constants that are stored with an equal one
  bool external = false;    ///< payloads lie behind the flatbuffer
  WorkCounters work;        ///< ops_visited, bytes_hashed, bytes_copied
};

/// Writes a graph of circle operators (and core.constant, core.state, core.return) as a Circle
/// file.
///
/// Tensors are numbered in order of appearance: arguments, then per operator its constants that are
/// new and its results. Equal constants (type and content) are one tensor, equal bytes of one
/// element type and shape one buffer; a byte is hashed at most once and only when another constant
/// has its type. Names: the interface's, then the values' own, then the original nodes'; a suffix
/// makes them unique. Symbolic dimensions are 1 in `shape` and -1 in `shape_signature`. Regions
/// become further subgraphs, breadth first. The same graph and options give the same bytes.
///
/// Cost is linear. Constants are copied from where they lie to the file, apart from strided and
/// 4-bit ones, which pass through a buffer of their own size.
///
/// Errors: kind Unsupported, `circle.write.operator` (operators of other dialects, all named),
/// `circle.write.type`, `circle.write.quantization`, `circle.write.capture` (a region uses a value
/// from outside), `circle.write.no_data` (a constant without bytes), `circle.operator.option`,
/// `circle.write.too_large`; kind Output, `file.*`.
Status write(const ir::Graph &graph, const std::string &path, const WriteOptions &options = {},
             WriteStats *stats = nullptr);

/// The same into memory.
Result<std::vector<std::byte>> write_bytes(const ir::Graph &graph, const WriteOptions &options = {},
                                           WriteStats *stats = nullptr);

struct Model;

struct ModelWriteOptions {
  /// False: what no pass touched is written back as it was read, down to the order of tensors,
  /// buffers and operator codes, names that occur twice, and parts that nothing uses.
  /// True: equal constants are stored once, unused tensors, buffers and codes are left out. What
  /// the format says beyond the IR (sparsity, calibrated ranges, …) is kept all the same.
  bool compact = false;
  u64 inline_limit = (u64{1} << 31) - 1; ///< as in WriteOptions
  bool sync = false;
};

/// Writes what read_model gave: every graph, description, subgraph names, signatures, metadata.
/// Parts that the IR has no place for are taken from the file that the model was read from
/// (Model::origin), for values and operators that are still the ones that were read; its bytes must
/// still be there. A file that chute wrote comes back byte for byte.
/// Errors: as write(); `circle.write.foreign` when a value whose meaning only its old subgraph
/// tells (block-wise scales) was moved to another one.
Status write_model(const Model &model, const std::string &path,
                   const ModelWriteOptions &options = {}, WriteStats *stats = nullptr);
Result<std::vector<std::byte>> write_model_bytes(const Model &model,
                                                 const ModelWriteOptions &options = {},
                                                 WriteStats *stats = nullptr);

} // namespace chute::circle

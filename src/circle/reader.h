#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace chute::circle {

/// A file's main subgraph with everything that it calls, and what a Graph has no place for.
struct Model {
  std::unique_ptr<ir::Graph> graph;
  std::string description;
  /// Key of the signature whose names the interface has; empty when the file has none.
  std::string signature_key;
  std::string subgraph_name;
  /// Named blobs, in order.
  std::vector<std::pair<std::string, std::string>> metadata;
  /// Subgraphs that nothing reachable from the main one calls, and further signatures: dropped.
  size_t dropped_subgraphs = 0;
  size_t dropped_signatures = 0;
};

/// Reads a `.circle` or `.tflite` file of any schema version into the circle dialect.
///
///   constants    core.constant, just before the first user; views of the mapped file, except where
///                their alignment or 4-bit packing needs a copy
///   variables    core.state
///   -1 operands  absent operands
///   subgraphs    regions of the operators that refer to them (a subgraph that several refer to is
///                read once for each, within a bound)
///   dimensions   -1 in shape_signature: the inferred expression where inference gives one,
///                otherwise a new symbol d0, d1, …
///   names        a tensor's name is its value's; the first signature names inputs and outputs
///
/// `bytes` stay valid as long as `owner` lives; the graph's constants share it.
/// Errors: kind BadInput with the fatal codes of circle/verify.h; kind Unsupported,
/// `circle.read.constant` (data of strings, MX and GGML blocks), `circle.read.quantization`
/// (block-wise scales).
Result<Model> read_model(ir::Context &ctx, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner);
Result<Model> read_model(ir::Context &ctx, const std::string &path);

/// The graph alone.
Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, const std::string &path);
Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, std::span<const std::byte> bytes,
                                        std::shared_ptr<const void> owner);

} // namespace chute::circle

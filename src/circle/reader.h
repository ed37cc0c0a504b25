#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace chute::circle {

struct Origin;

/// One name of a signature and the port that it stands for.
struct SignaturePort {
  std::string name;
  u32 position = 0; ///< among the graph's inputs() or outputs()
};

/// A named entry point. The first one of a graph also gave its inputs() and outputs() their names;
/// what those say now is written back.
struct Signature {
  std::string key;
  u32 graph = 0; ///< 0 is Model::graph, i + 1 is Model::more[i]
  std::vector<SignaturePort> inputs;
  std::vector<SignaturePort> outputs;
};

/// A whole file: its entry points as graphs, and what a Graph has no place for.
struct Model {
  /// The main subgraph with everything that it calls.
  std::unique_ptr<ir::Graph> graph;
  /// The subgraphs that nothing above calls, and those with a signature, in the file's order; each
  /// with everything that it calls.
  std::vector<std::unique_ptr<ir::Graph>> more;
  std::string description;
  /// Key of the first signature of the main subgraph, whose names the interface has; empty when
  /// there is none.
  std::string signature_key;
  std::string subgraph_name;
  /// Every signature of the file, in order.
  std::vector<Signature> signatures;
  /// Named blobs, in order.
  std::vector<std::pair<std::string, std::string>> metadata;
  u32 version = 0;
  /// For write_model (circle/writer.h), which puts back what the graphs do not hold. Views the
  /// file.
  std::shared_ptr<const Origin> origin;
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
///   constants without a dense form (sparse ones, strings, MX and GGML blocks): has_data is false,
///                so that nothing computes with them; write_model stores their bytes again
///
/// `bytes` stay valid as long as `owner` lives; the graph's constants share it.
/// Errors: kind BadInput with the fatal codes of circle/verify.h.
Result<Model> read_model(ir::Context &ctx, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner);
Result<Model> read_model(ir::Context &ctx, const std::string &path);

/// The same of one subgraph, with everything that it calls, as the main one; the rest of the file
/// is left out. Also `circle.file.subgraph` (kind Usage): the file has no such subgraph.
Result<Model> read_subgraph_model(ir::Context &ctx, std::span<const std::byte> bytes,
                                  std::shared_ptr<const void> owner, u32 subgraph);

/// The graph alone.
Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, const std::string &path);
Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, std::span<const std::byte> bytes,
                                        std::shared_ptr<const void> owner);

} // namespace chute::circle

#pragma once

#include "ir/graph.h"
#include "support/diag.h"
#include "support/result.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chute::pt2 {

struct ReadOptions {
  /// Threads that decode JSON; the graph is the same for any number. 0: one per core.
  unsigned threads = 1;
  /// Which of an archive's models to read; empty: the only one, or the one called `model`.
  std::string model;
  /// Nodes are decoded in pieces of about this many bytes of JSON.
  size_t piece_bytes = size_t{1} << 18;
  /// Compare the CRC-32 of the JSON members. Off only where damaged JSON is what is tested.
  bool check_json = true;
  /// Compare the CRC-32 of weights too. Reads every byte.
  bool check_weights = false;
  /// Fill Summary::size_hints.
  bool size_hints = false;
  /// Deflated members that inflate to more are refused.
  u64 max_inflated = u64{1} << 34;
};

/// What the archive says about itself.
struct Summary {
  std::string torch_version; ///< "2.13.0"
  int schema_major = 0;
  int schema_minor = 0;
  std::vector<std::string> verifiers; ///< "TRAINING" after export, "ATEN" after run_decompositions
  std::string model;                  ///< name of the model that was read
  char generation = 'C'; ///< archive layout: 'A' up to torch 2.7, 'B' 2.8, 'C' 2.9 and later
  u64 json_bytes = 0;
  u64 nodes = 0;
  /// Sizes that are symbols, with what the export's example inputs had, when asked for.
  std::vector<std::pair<std::string, i64>> size_hints;
  /// A graph in which in-place operators still change their operands.
  bool is_training_dialect() const {
    for (const std::string &v : verifiers)
      if (v == "TRAINING")
        return true;
    return false;
  }
};

/// Reads the program of a torch.export archive (`.pt2`) into a graph of the aten dialect, which
/// `aten::register_dialect()` must have registered.
///
/// What the graph looks like:
///  * User inputs are arguments of the body; an argument for a symbolic size has Int type and is
///  named
///    after its symbol ("s77"). So is the result of an operator that reads an integer from data
///    (`aten.item`, "u1"): an Int value named like a symbol defines the symbol. Every other use of
///    a symbolic integer is an expression in an attribute or a shape, never an operand. Operators
///    that only compute sizes are dropped; a size among the outputs is a `core.size`.
///  * Parameters, buffers and tensor constants that are used are `core.constant`, in the
///  signature's order
///    at the top of the body; those that the program writes are `core.state`. Equal views of one
///    storage share one Constant. Weights view the mapped file.
///  * A Python number given where an operator takes a tensor is a rank-0 `core.constant` of the
///  element
///    type that PyTorch's promotion of Python numbers leads to.
///  * Result types are the recorded ones. An absent result has None type.
///  * `wrap_with_set_grad_enabled` and `wrap_with_autocast` are replaced by their bodies, with the
///  conversions that autocast made as `aten._to_copy`; cond,
///    while_loop, map and scan are `higher_order.*` with regions that capture nothing.
///  * Operators without a table row are `core.unregistered` with every argument.
///
/// Warnings go to `diagnostics`. Errors: BadInput with codes `file.open`, `pt2.zip.*`,
/// `pt2.archive.*`, `pt2.json.*`, `pt2.graph.*`, `pt2.node.*`, `pt2.value.*`, `pt2.weight.*`;
/// Unsupported for what is well-formed but can not be represented. The object names the member and
/// the byte in it, or the node.
Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, const std::string &path,
                                        Diagnostics &diagnostics, const ReadOptions &options = {},
                                        Summary *summary = nullptr);

/// The same from bytes in memory, which `owner` keeps alive. `name` stands for the path in
/// messages.
Result<std::unique_ptr<ir::Graph>> read_bytes(ir::Context &ctx, std::span<const std::byte> archive,
                                              std::shared_ptr<const void> owner,
                                              const std::string &name, Diagnostics &diagnostics,
                                              const ReadOptions &options = {},
                                              Summary *summary = nullptr);

} // namespace chute::pt2

#pragma once

#include "circle/file_view.h"
#include "circle/op_signature.h"
#include "circle/origin.h"
#include "ir/builder.h"
#include "ir/graph.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <vector>

/// One subgraph into one region. Internal to reader and verifier.
namespace chute::circle {

/// What all subgraphs of a file share while it is read.
class FileReader {
public:
  /// `origin` and `table` are filled when they are given.
  FileReader(const FileView &file, std::shared_ptr<const void> owner, ir::Graph &graph,
             Origin *origin = nullptr, GraphOrigin *table = nullptr)
      : file_(file), owner_(std::move(owner)), graph_(graph), origin_(origin), table_(table) {}

  const FileView &file() const { return file_; }
  ir::Graph &graph() const { return graph_; }
  ir::Context &ctx() const { return graph_.context(); }

  /// The constant in a tensor's buffer, of that type.
  Result<const ir::Constant *> constant(const ::circle::Tensor &tensor, ir::Type type);
  Result<const ir::Quantization *> quantization(const ::circle::Tensor &tensor,
                                                ir::ElementType element);
  ir::SymInt fresh_symbol();

  // What the writer needs to put back: where values and operators come from.
  void note_region(const ir::Region &region, u32 subgraph);
  void note_value(const ir::Value &value, u32 subgraph, u32 tensor);
  void note_op(const ir::Op &op, u32 subgraph, u32 index);

private:
  struct Copy {
    const std::byte *data;
    std::shared_ptr<const void> owner;
  };
  const ir::Constant *keep(const ir::Constant *constant, u32 buffer);

  const FileView &file_;
  std::shared_ptr<const void> owner_;
  ir::Graph &graph_;
  Origin *origin_;
  GraphOrigin *table_;
  boost::unordered_flat_map<u64, Copy> copies_;       // by buffer, and whether unpacked
  std::vector<const ir::Constant *> first_constants_; // by buffer
  boost::unordered_flat_map<u64, const ir::Constant *> constants_; // further ones by buffer, type
  boost::unordered_flat_map<std::pair<u32, i64>, const ir::Quantization *>
      simple_quants_; // by the bits of the scale and the zero point
  boost::unordered_flat_map<std::pair<const ::circle::QuantizationParameters *, i32>,
                            const ir::Quantization *>
      quants_;
  u32 symbols_ = 0;
};

/// Called for every operator with its position, when a contract check is wanted: what inference
/// says about it. `expected` are the result types that it gives. Returns whether there was nothing
/// to report.
using ContractCheck = std::function<bool(u32 op_index, const ir::Op &op, const Status &inferred,
                                         std::span<const ir::Type> expected)>;

/// Nested subgraphs of an operator, to be read by the caller into the operator's regions.
using NestedSubgraph = std::function<Result<ir::Region *>(u32 subgraph)>;

/// Reads subgraph `index`, whose structure was checked, into an empty region with its terminator.
Status read_subgraph(FileReader &reader, u32 index, ir::Region &region,
                     const NestedSubgraph &nested, const ContractCheck &contract);

/// Calls `contract` for one operator of every kind in subgraph `index`, whose contracts follow from
/// their signatures (OpSignatures::enter said so), and for all of a kind that it reports. `clean`
/// holds the kinds that were found clean before. Cost: a hash per operator.
Status check_kinds(FileReader &reader, u32 index, const ContractCheck &contract,
                   OpSignatures &signatures, KeySet &clean);

} // namespace chute::circle

#pragma once

#include "circle/ops.h"
#include "circle/origin.h"
#include "circle/writer.h"
#include "ir/graph.h"

#include <deque>
#include <string>
#include <vector>

/// What goes into a file, decided before a byte is written: subgraphs, tensors with their names,
/// buffers, operator codes. Internal to the writer.
namespace chute::circle {

/// What is written: the graphs of a file, and where they come from.
struct WriteRequest {
  std::vector<const ir::Graph *> graphs; ///< the first one is the main subgraph
  const Origin *origin = nullptr;        ///< of the same graphs
  bool compact = false;
  std::span<const std::pair<std::string, std::string>> metadata;
};

struct PlannedTensor {
  ir::Type type; ///< invalid: everything is as in the origin
  std::string_view name;
  u32 buffer = 0;
  bool variable = false;
  u32 origin = kNoOrigin;     ///< number of the tensor that it was, over the whole source file
  bool quant_changed = false; ///< since it was read
};

struct PlannedOp {
  const ir::Op *op;
  u32 code;
  u32 inputs; ///< as written: absent operands at the end may be left out
  u32 intermediates;
  u32 origin; ///< number of the operator that it was
};

struct PlannedSubgraph {
  const ir::Graph *graph = nullptr;
  const ir::Region *region = nullptr;
  u32 entry = 0;          ///< index of its graph
  u32 origin = kNoOrigin; ///< the subgraph that it was
  std::vector<PlannedTensor> tensors;
  std::vector<i32> inputs;
  std::vector<i32> outputs;
  std::vector<PlannedOp> ops;
  /// Per operator its operands', results' and intermediates' tensors, one after the other.
  std::vector<i32> indices;
  /// Per operator with regions, in order: the subgraphs of all its regions.
  std::vector<u32> callees;
};

struct PlannedBuffer {
  const ir::Constant *constant = nullptr;
  u64 bytes = 0;                       ///< as stored
  std::span<const std::byte> raw = {}; ///< the content, when there is no constant
  u32 origin = kNoOrigin;              ///< index of the buffer that it was
  bool metadata = false;               ///< stays inside of the flatbuffer
};

struct PlannedCode {
  i32 code;
  i32 version;
  std::string_view custom_code;
};

struct Plan {
  std::vector<PlannedSubgraph> subgraphs; ///< each graph's body before what it calls
  std::vector<u32> entries;               ///< by graph: its body
  std::vector<PlannedBuffer> buffers;     ///< buffer i of the file is buffers[i - 1]
  std::vector<PlannedCode> codes;
  u64 payload_bytes = 0;
  std::deque<std::string> own_names; ///< names that were made up
  std::vector<u32> metadata_buffers; ///< by entry of WriteRequest::metadata
  std::vector<u32> legacy_metadata;  ///< the schema's nameless `metadata_buffer`
};

Result<Plan> make_plan(const WriteRequest &request, WriteStats &stats);

/// Puts subgraphs, tensors, buffers and operator codes in the order that they had in the source, in
/// front of what is new, and drops the codes that nothing uses any more apart from `kept_codes`.
/// With `compact`, buffers and codes stay in order of appearance.
void arrange(const WriteRequest &request, const std::vector<bool> &kept_codes, Plan &plan);

} // namespace chute::circle

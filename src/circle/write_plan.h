#pragma once

#include "circle/ops.h"
#include "circle/writer.h"
#include "ir/graph.h"

#include <deque>
#include <string>
#include <vector>

/// What goes into a file, decided before a byte is written: subgraphs, tensors with their names,
/// buffers, operator codes. Internal to the writer.
namespace chute::circle {

struct PlannedTensor {
  ir::Type type;
  std::string_view name;
  u32 buffer = 0;
  bool variable = false;
};

struct PlannedSubgraph {
  const ir::Region *region = nullptr;
  std::vector<PlannedTensor> tensors;
  std::vector<i32> inputs;
  std::vector<i32> outputs;
  /// Operators in order, and their operands' and results' tensors one after the other (counts
  /// follow from the operators).
  std::vector<const ir::Op *> ops;
  std::vector<i32> indices;
  /// Per operator with regions, in order: the first of its subgraphs (they are consecutive).
  std::vector<u32> region_starts;
};

struct PlannedBuffer {
  const ir::Constant *constant;
  u64 bytes; ///< as stored
};

struct PlannedCode {
  i32 code;
  i32 version;
  std::string_view custom_code;
};

struct Plan {
  std::vector<PlannedSubgraph> subgraphs; ///< the body first
  std::vector<PlannedBuffer> buffers;     ///< buffer i of the file is buffers[i - 1]
  std::vector<PlannedCode> codes;
  std::vector<u32> op_code; ///< by Op::id
  u64 payload_bytes = 0;
  std::deque<std::string> own_names; ///< names that were made up
};

/// Number of operands that go onto the wire: absent ones at the end may be left out.
u32 written_operands(const ir::Op &op, const WireDef &wire);

Result<Plan> make_plan(const ir::Graph &graph, WriteStats &stats);

} // namespace chute::circle

#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chute::executorch {

/// A part of a program that a backend executes: here the whole of it.
struct Delegate {
  std::string backend; ///< "TOSABackend", "EthosUBackend"
  std::vector<std::pair<std::string, std::string>> compile_specs; ///< in the order of the file
  std::span<const std::byte> payload;
};

/// An ExecuTorch program (`.pte`, identifier ET12) with one method, `forward`, that hands its
/// inputs to `delegate` and returns its outputs. Inputs and outputs are those of `graph`, in order;
/// their memory is planned one behind the other.
///
/// The file is the flatbuffer of schema/executorch_program.fbs with the extended header behind its
/// identifier, then the segments: an empty one for constants, and the payload.
///
/// Errors: kind Unsupported, `pte.shape` (a dynamic shape), `pte.type` (an element type without a
/// scalar type in ExecuTorch).
Result<std::vector<std::byte>> write_program(const ir::Graph &graph, const Delegate &delegate);

} // namespace chute::executorch

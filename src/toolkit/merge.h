#pragma once

#include "circle/reader.h"
#include "support/result.h"

#include <string>
#include <utility>
#include <vector>

namespace chute::toolkit {

enum class MergeMode : u8 {
  Chain,      ///< outputs of earlier models feed inputs of later ones
  SideBySide, ///< one graph that computes all of them
  Signatures, ///< every model stays a subgraph with signatures of its own
};

struct MergeOptions {
  MergeMode mode = MergeMode::Chain;
  /// Chain: (output, input) by name, instead of what names and positions say. An input belongs to
  /// the first model behind the output's that has one of that name.
  std::vector<std::pair<std::string, std::string>> connect;
  bool keep_outputs = false; ///< Chain: outputs that feed an input stay outputs, too
  bool share_inputs = false; ///< inputs of one name and type are one input
};

struct MergeReport {
  struct Connection {
    std::string output;
    std::string input;
    size_t model; ///< that the input belongs to
  };
  struct Renamed {
    std::string before;
    std::string after;
    size_t model;
  };
  std::vector<Connection> connections;
  std::vector<Renamed> renamed; ///< ports, variables, signatures whose name was taken
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// Joins models of one Context into the first. A chain connects each further model by names: an
/// input takes the latest output of an earlier model that has its name. When none of its inputs is
/// named so, the inputs take the outputs of the model before it by position, which have to be as
/// many. Inputs without a source become inputs of the whole; outputs that nothing took stay
/// outputs.
///
/// Names that are taken get the suffix _1, _2, …, the earlier model keeps its own: ports, variables
/// (which stay apart, whatever they are called), signature keys, metadata of other content. Equal
/// constants are stored once by the writer, constants of one name and other content are two.
///
/// Errors, kind Usage: `toolkit.merge.connect` (no such port, numbers of ports differ),
/// `toolkit.merge.type` (an output's type is not the input's).
Result<MergeReport> merge(std::vector<circle::Model> &models, const MergeOptions &options);

} // namespace chute::toolkit

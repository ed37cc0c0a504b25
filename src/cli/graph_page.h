#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <string>

namespace chute::cli {

struct GraphPageFacts {
  std::string title; ///< the file's name
  std::string facts; ///< one line below it
};

/// Writes an HTML page that shows the graph and needs nothing else: no network, no other file. The
/// graph is collapsed by module path (of the source program, otherwise by the parts of tensor
/// names), a level at a time, so that a page of any size draws some hundred boxes.
/// Errors: kind Output, `file.*`.
Status write_graph_page(const ir::Graph &graph, const GraphPageFacts &facts,
                        const std::string &path);

/// The page around the data. `kGraphPageHead`, the data as JSON, `kGraphPageTail`.
extern const char *const kGraphPageHead;
extern const char *const kGraphPageTail;

} // namespace chute::cli

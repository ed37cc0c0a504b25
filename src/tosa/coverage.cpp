#include "tosa/coverage.h"

#include "ir/context.h"
#include "ir/walk.h"
#include "tosa/ops.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::tosa {

namespace {

std::string describe(const ir::Op &op) {
  std::string text(wire(op.opcode()).id);
  if (op.num_results() == 0)
    return text;
  const ir::Type t = op.result()->type();
  text += ' ';
  for (int i = 0; i < t.rank(); ++i)
    text += (i ? "x" : "") + (t.dim(i).is_static() ? std::to_string(t.dim(i).value()) : "?");
  return text + (t.rank() ? " " : "") + std::string(ir::element_type_name(t.element()));
}

} // namespace

std::vector<Coverage> coverage(const ir::Graph &graph, const Target &target) {
  std::vector<Coverage> rows;
  boost::unordered_flat_map<std::string, size_t> index;
  ir::walk(graph, [&](const ir::Op &op) {
    if (!is_tosa(op.opcode()))
      return;
    const ir::Provenance from = graph.locations().resolve(op.loc());
    const std::string node = from.nodes.empty() ? std::string() : from.nodes.front();
    const auto [at, fresh] = index.try_emplace(node, rows.size());
    if (fresh)
      rows.push_back({node, from.module_path, {}, {}});
    Coverage &row = rows[at->second];
    row.emitted.push_back(describe(op));
    if (!row.failed)
      row.failed = check_operator(op, target);
  });
  return rows;
}

} // namespace chute::tosa

#include "circle/constant_pool.h"

namespace chute::circle {

std::string describe(const ir::Graph &graph, const Value *v) {
  std::string text = "%" + std::string(graph.context().string(v->name()));
  if (text.size() == 1)
    text += std::to_string(v->id());
  if (const ir::Op *p = v->producer())
    text += " " + std::string(p->name());
  return text;
}

tl::unexpected<Diagnostic> fail_at(const ir::Graph &graph, ir::LocId loc, std::string code,
                                   std::string message, std::string object, std::string hint) {
  Diagnostic d;
  d.kind = ErrorKind::Unsupported;
  d.code = std::move(code);
  d.message = std::move(message);
  d.object = std::move(object);
  d.hint = std::move(hint);
  const ir::Provenance p = graph.locations().resolve(loc);
  d.module_path = p.module_path;
  d.source_line = p.source_line;
  return tl::unexpected<Diagnostic>(std::move(d));
}

} // namespace chute::circle

// legalize-circle: see legalize.h. The families of rules lie beside this file.
#include "circle/legalize/legalize.h"

#include "circle/legalize/emit.h"
#include "ir/walk.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::circle {

namespace {

std::string target_name(const ir::Op &op) {
  if (op.opcode() == ir::core_op::unregistered)
    return std::string(op.attr("target").as_string());
  return std::string(op.name());
}

/// One finding per operator and reason, in order of first appearance.
void report(const ir::Graph &graph, const LegalizeState &state, Diagnostics &diagnostics) {
  struct Group {
    const ir::Op *first;
    Refusal why;
    size_t count;
  };
  std::vector<Group> groups;
  boost::unordered_flat_map<std::string, size_t> index;
  ir::walk(graph, [&](const ir::Op &op) {
    const bool fine = is_circle(op.opcode()) || (ir::index(op.opcode()) < ir::kAtenBase &&
                                                 op.opcode() != ir::core_op::unregistered);
    if (fine)
      return;
    const auto it = state.refusals.find(op.id());
    Refusal why = it != state.refusals.end()
                      ? it->second
                      : Refusal{"no lowering to Circle is known", "replace it in the model by "
                                                                  "operators that have one"};
    auto [at, fresh] = index.try_emplace(target_name(op) + '\n' + why.reason, groups.size());
    if (fresh)
      groups.push_back({&op, std::move(why), 0});
    ++groups[at->second].count;
  });
  for (const Group &g : groups) {
    std::string text = g.why.reason;
    if (g.count > 1)
      text += " (" + std::to_string(g.count) + " places; the first is named)";
    diagnostics.add(pass::at_op(graph, *g.first, ErrorKind::Unsupported, "circle.unsupported",
                                std::move(text), g.why.hint));
  }
}

} // namespace

const pass::PatternSet &legalize_patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_elementwise_rules(s);
    add_math_rules(s);
    add_reduction_rules(s);
    add_matmul_rules(s);
    add_conv_rules(s);
    add_pool_rules(s);
    add_norm_rules(s);
    add_movement_rules(s);
    add_indexing_rules(s);
    add_scatter_rules(s);
    add_resize_rules(s);
    return s;
  }();
  return set;
}

void legalize(pass::PassContext &ctx) {
  LegalizeState state;
  ctx.run(legalize_patterns(), &state);
  report(ctx.graph, state, ctx.diagnostics);
}

} // namespace chute::circle

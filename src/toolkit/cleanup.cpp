#include "toolkit/cleanup.h"

#include "ir/walk.h"
#include "pass/pass.h"

namespace chute::toolkit {

namespace {

struct Census {
  std::map<std::string, u64> ops;
  u64 constants = 0;
};

Census census(const ir::Graph &graph, WorkCounters &work) {
  std::vector<u64> by_opcode(ir::kMaxOpCode, 0);
  Census out;
  ir::walk(graph, [&](const ir::Op &op) {
    ++work.ops_visited;
    if (op.has(ir::trait::kConstant))
      ++out.constants;
    else if (!op.has(ir::trait::kTerminator))
      ++by_opcode[ir::index(op.opcode())];
  });
  for (u16 i = 0; i < ir::kMaxOpCode; ++i)
    if (by_opcode[i])
      out.ops.emplace(ir::Registry::global().def(ir::OpCode{i}).name, by_opcode[i]);
  return out;
}

void prune_inputs(ir::Graph &graph, CleanupReport &report) {
  std::vector<ir::InputInfo> kept;
  std::vector<u8> dropped(graph.num_value_ids(), 0);
  u32 position = 0;
  for (ir::InputInfo &info : graph.inputs()) {
    if (info.value && !info.value->has_uses()) {
      dropped[info.value->id()] = 1;
      report.pruned_inputs.push_back(info.name);
      report.pruned_positions.push_back(position);
    } else {
      kept.push_back(std::move(info));
    }
    ++position;
  }
  graph.inputs() = std::move(kept);
  for (u32 i = graph.body().num_args(); i-- > 0;)
    if (dropped[graph.body().arg(i)->id()])
      graph.erase_argument(graph.body(), i);
}

} // namespace

Result<CleanupReport> cleanup(ir::Graph &graph, const CleanupOptions &options) {
  CleanupReport report;
  const Census before = census(graph, report.work);
  pass::register_core_passes();
  Diagnostics diagnostics;
  std::vector<pass::PassRecord> records;
  if (!pass::run_pipeline(graph, {"dce"}, diagnostics, {}, records))
    return tl::unexpected<Diagnostic>(diagnostics.all().front());
  for (const pass::PassRecord &r : records)
    report.work += r.counters;
  const Census after = census(graph, report.work);
  for (const auto &[name, count] : before.ops) {
    const auto left = after.ops.find(name);
    const u64 gone = count - (left == after.ops.end() ? 0 : left->second);
    if (gone)
      report.dead_by_name[name] = gone;
    report.dead_operators += gone;
  }
  report.unused_constants = before.constants - after.constants;
  if (options.prune_inputs)
    prune_inputs(graph, report);
  return report;
}

} // namespace chute::toolkit

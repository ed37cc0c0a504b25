#include "pass/pass.h"

#include "ir/verifier.h"
#include "support/check.h"
#include "support/trace.h"

#include <algorithm>

namespace chute::pass {

PassRegistry &PassRegistry::global() {
  static PassRegistry registry;
  return registry;
}

void PassRegistry::add(const PassInfo &info) {
  CHUTE_CHECK(!find(info.name), "pass name taken");
  passes_.push_back(info);
}

const PassInfo *PassRegistry::find(std::string_view name) const {
  const auto it = std::find_if(passes_.begin(), passes_.end(),
                               [&](const PassInfo &p) { return p.name == name; });
  return it == passes_.end() ? nullptr : &*it;
}

bool run_pipeline(ir::Graph &graph, const std::vector<std::string> &passes,
                  Diagnostics &diagnostics, const PipelineOptions &options,
                  std::vector<PassRecord> &records) {
  u64 used = 0;
  for (const std::string &name : passes) {
    const PassInfo *info = PassRegistry::global().find(name);
    if (!info) {
      Diagnostic d;
      d.kind = ErrorKind::Usage;
      d.code = "pass.unknown";
      d.message = "no pass is called '" + name + "'";
      d.hint = "`chute passes` lists them";
      diagnostics.add(std::move(d));
      return false;
    }
    PassRecord record;
    record.name = name;
    record.ops_before = graph.num_ops();
    PassContext ctx{graph,
                    diagnostics,
                    record.counters,
                    options.settings,
                    {options.rewrite_limit, &used, RewriteOptions{}.budget_per_op},
                    options.collect_stats ? &record.patterns : nullptr};
    const size_t errors = diagnostics.error_count();
    const i64 start = Trace::now_us();
    info->run(ctx);
    const i64 duration = Trace::now_us() - start;
    if (Trace::global().enabled())
      Trace::global().record("pass " + name, start, duration);
    record.seconds = static_cast<double>(duration) * 1e-6;
    record.ops_after = graph.num_ops();
    if (diagnostics.error_count() == errors && options.verify_each) {
      ir::verify(graph, diagnostics);
      if (diagnostics.error_count() != errors) {
        Diagnostic d;
        d.code = "pass.invalid";
        d.message = "the graph is invalid after pass '" + name + "'";
        diagnostics.add(std::move(d));
      }
    }
    if (options.after_pass)
      options.after_pass(record, graph);
    records.push_back(std::move(record));
    if (diagnostics.error_count() != errors)
      return false;
  }
  return true;
}

} // namespace chute::pass

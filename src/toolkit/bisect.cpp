#include "toolkit/bisect.h"

#include "eval/evaluator.h"

#include <map>

namespace chute::toolkit {

namespace {

/// What a run of the pipeline's beginning gave.
struct Outcome {
  std::unique_ptr<ir::Graph> graph;
  std::vector<OutputDifference> outputs;
  bool within = true;
  u64 rewrites = 0; ///< of the last pass
  std::map<std::string_view, u64> by_rule;
};

class Bisector {
public:
  Bisector(std::span<const eval::Tensor> inputs, const BisectOptions &options)
      : inputs_(inputs), options_(options) {}

  Result<BisectReport> run() {
    auto start = options_.load();
    if (!start)
      return tl::unexpected(std::move(start.error()));
    reference_graph_ = std::move(*start);
    eval::EvalOptions evaluation;
    evaluation.threads = options_.threads;
    auto reference = eval::evaluate(*reference_graph_, inputs_, evaluation);
    if (!reference)
      return tl::unexpected(std::move(reference.error()));
    reference_ = std::move(*reference);
    ++report_.runs;

    auto whole = after(options_.passes.size(), kNoLimit);
    if (!whole)
      return tl::unexpected(std::move(whole.error()));
    if (whole->within)
      return std::move(report_);
    // The shortest beginning of the pipeline that is wrong.
    size_t good = 0, bad = options_.passes.size();
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      auto outcome = after(middle, kNoLimit);
      if (!outcome)
        return tl::unexpected(std::move(outcome.error()));
      (outcome->within ? good : bad) = middle;
    }
    return within_pass(bad);
  }

private:
  static constexpr u64 kNoLimit = ~u64{0};

  Result<BisectReport> within_pass(size_t count) {
    auto full = after(count, kNoLimit);
    auto none = full ? after(count, 0) : Result<Outcome>(tl::unexpected(full.error()));
    if (!none)
      return tl::unexpected(std::move(none.error()));
    report_.found = true;
    report_.pass = options_.passes[count - 1];
    report_.pass_index = count - 1;
    report_.rewrites = full->rewrites;
    if (!none->within || full->rewrites == 0) {
      report_.outputs = full->outputs;
      auto before = after(count - 1, kNoLimit);
      if (!before)
        return tl::unexpected(std::move(before.error()));
      report_.change = diff(*before->graph, *full->graph);
      return std::move(report_);
    }
    u64 good = 0, bad = full->rewrites;
    Outcome last_good = std::move(*none), last_bad = std::move(*full);
    while (bad - good > 1) {
      const u64 middle = good + (bad - good) / 2;
      auto outcome = after(count, middle);
      if (!outcome)
        return tl::unexpected(std::move(outcome.error()));
      if (outcome->within) {
        good = middle;
        last_good = std::move(*outcome);
      } else {
        bad = middle;
        last_bad = std::move(*outcome);
      }
    }
    report_.application = bad;
    // The full run knows no limit, and may do work behind its last rewrite.
    if (bad == last_bad.rewrites && bad == report_.rewrites) {
      auto again = after(count, bad);
      if (!again)
        return tl::unexpected(std::move(again.error()));
      if (!again->within)
        last_bad = std::move(*again);
    }
    for (const auto &[rule, times] : last_bad.by_rule)
      if (times > last_good.by_rule[rule])
        report_.rule = rule;
    report_.outputs = last_bad.outputs;
    report_.change = diff(*last_good.graph, *last_bad.graph);
    return std::move(report_);
  }

  /// The program after the first `count` passes, of whose last `limit` rewrites are done.
  Result<Outcome> after(size_t count, u64 limit) {
    if (options_.on_step)
      options_.on_step(count == 0          ? "no pass"
                       : limit == kNoLimit ? options_.passes[count - 1]
                                           : options_.passes[count - 1] + ", " +
                                                 std::to_string(limit) + " rewrites");
    Outcome out;
    auto graph = options_.load();
    if (!graph)
      return tl::unexpected(std::move(graph.error()));
    out.graph = std::move(*graph);
    pass::PipelineOptions pipeline = options_.pipeline;
    pipeline.collect_stats = true;
    pipeline.rewrite_limit = kNoLimit;
    Diagnostics diagnostics;
    std::vector<pass::PassRecord> records;
    const auto run = [&](std::vector<std::string> passes) {
      records.clear();
      return pass::run_pipeline(*out.graph, passes, diagnostics, pipeline, records);
    };
    const auto &all = options_.passes;
    bool ok = true;
    if (count > 1)
      ok = run({all.begin(), all.begin() + static_cast<i64>(count) - 1});
    pipeline.rewrite_limit = limit;
    // A lowering that had to stop complains about what is left, which executes nevertheless.
    if (ok && count > 0)
      ok = run({all[count - 1]}) || limit != kNoLimit;
    if (!ok) {
      for (const Diagnostic &d : diagnostics.all())
        if (d.severity == Severity::Error)
          return tl::unexpected<Diagnostic>(d);
    }
    if (count > 0 && !records.empty()) {
      out.rewrites = records.back().counters.rewrites;
      for (const pass::PatternStats &p : records.back().patterns)
        out.by_rule[p.name] += p.rewrites;
    }
    if (Status s = check(out); !s)
      return tl::unexpected(std::move(s.error()));
    return out;
  }

  Status check(Outcome &out) {
    auto inputs = inputs_for(*out.graph, *reference_graph_, inputs_);
    if (!inputs)
      return tl::unexpected(std::move(inputs.error()));
    eval::EvalOptions evaluation;
    evaluation.threads = options_.threads;
    auto outputs = eval::evaluate(*out.graph, *inputs, evaluation);
    if (!outputs)
      return tl::unexpected(std::move(outputs.error()));
    ++report_.runs;
    const std::vector<size_t> p = user_outputs(*reference_graph_), q = user_outputs(*out.graph);
    const auto type_of = [](const ir::Graph &g, size_t i) {
      const ir::OutputInfo &o = g.outputs()[i];
      return o.operand >= 0 && g.return_op()
                 ? g.return_op()->operand(static_cast<u32>(o.operand))->type()
                 : ir::Type();
    };
    for (size_t i = 0; i < std::min(p.size(), q.size()); ++i) {
      OutputDifference d{reference_graph_->outputs()[p[i]].name, out.graph->outputs()[q[i]].name,
                         measure(reference_[p[i]], type_of(*reference_graph_, p[i]),
                                 (*outputs)[q[i]], type_of(*out.graph, q[i]), options_.tolerance)};
      out.within = out.within && d.difference.within();
      out.outputs.push_back(std::move(d));
    }
    out.within = out.within && p.size() == q.size();
    return {};
  }

  std::span<const eval::Tensor> inputs_;
  const BisectOptions &options_;
  BisectReport report_;
  std::unique_ptr<ir::Graph> reference_graph_;
  std::vector<eval::Tensor> reference_;
};

} // namespace

Result<BisectReport> bisect(std::span<const eval::Tensor> inputs, const BisectOptions &options) {
  return Bisector(inputs, options).run();
}

} // namespace chute::toolkit

#include "toolkit/plan.h"

#include "cli/graph_file.h"
#include "support/text_file.h"

#include <algorithm>
#include <cstdio>

namespace chute::cli {

namespace {

unsigned long long wide(u64 n) { return static_cast<unsigned long long>(n); }

class Plan final : public Command {
public:
  std::string_view summary() const override {
    return "Show how much memory activations take over time, and where each tensor may lie";
  }
  std::string_view examples() const override {
    return "  chute plan model.circle\n"
           "  chute plan model.circle --svg memory.svg --top 40\n"
           "  chute plan model.circle --in-place --alignment 16 --json | jq .arena\n"
           "Operators run in the file's order; what a better one would take, and what any takes at "
           "least, is "
           "\nshown beside it. The lower bound is the most that lives at one time; "
           "the arena is\nwhat the placement found needs. Constants and variables are counted "
           "apart.";
  }
  void declare(Args &args) override {
    args.positional("model", model_,
                    "A .circle, .tflite, .pt2 or text IR file; - for standard input");
    args.option("--svg", svg_, "Draw the plan into this file; - for standard output");
    args.option("--alignment", options_.alignment,
                "Bytes that tensors are aligned to (default 64)");
    args.option("--top", top_, "List so many of the tensors that live at the peak (default 10)");
    args.flag("--in-place", options_.in_place,
              "Elementwise operators write over an operand that nothing needs any more");
    args.flag("--no-alias", no_alias_, "RESHAPE and the like copy");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    if (options_.alignment == 0 || (options_.alignment & (options_.alignment - 1)) != 0 ||
        options_.alignment > 1 << 20)
      return session.fail(fail(ErrorKind::Usage, "cli.plan.alignment",
                               "an alignment is a power of two of at most 1048576", {},
                               "for example --alignment 16")
                              .value());
    options_.alias_views = !no_alias_;
    ir::Context ctx;
    auto file = open_graph(ctx, model_, true, session);
    if (!file)
      return session.fail(std::move(file.error()));
    const toolkit::PlanReport report = toolkit::plan(*file->model.graph, options_);
    if (!svg_.empty())
      if (Status s = write_text(svg_, toolkit::plan_svg(report, model_)); !s)
        return session.fail(std::move(s.error()));
    const toolkit::OrderReport other =
        toolkit::plan_in_another_order(*file->model.graph, report, options_);
    // A picture on standard output is all that goes there.
    if (session.json)
      print_json(report, other, svg_ == "-" ? stderr : stdout);
    else if (svg_ != "-")
      print_text(report, other);
    return session.finish();
  }

private:
  void print_text(const toolkit::PlanReport &r, const toolkit::OrderReport &other) const {
    const double over =
        r.lower_bound
            ? 100.0 * (static_cast<double>(r.arena) / static_cast<double>(r.lower_bound) - 1)
            : 0;
    std::printf("arena        %llu bytes (%s), %.1f %% over the lower bound\n", wide(r.arena),
                r.method.c_str(), over);
    std::printf("lower bound  %llu bytes, at step %llu%s%s\n", wide(r.lower_bound),
                wide(r.peak_step), r.steps.empty() ? "" : ", ",
                r.steps.empty() ? "" : r.steps[r.peak_step].c_str());
    if (other.better)
      std::printf(
          "reordered    arena %llu bytes, lower bound %llu bytes (chute optimize -O2, or -p "
          "order-for-memory)\n",
          wide(other.plan.arena), wide(other.plan.lower_bound));
    std::printf("any order    %llu bytes at least%s\n", wide(other.order_bound),
                other.better ? "" : "; none better than this one was found");
    std::printf("no reuse     %llu bytes in %zu tensors, %llu more share an operand's memory\n",
                wide(r.total), r.tensors.size(), wide(r.aliased));
    std::printf("constants    %llu bytes; variables %llu bytes\n", wide(r.constants),
                wide(r.variables));
    if (r.dynamic)
      std::printf("%llu tensors have dynamic sizes and count with the smallest they allow\n",
                  wide(r.dynamic));
    std::vector<const toolkit::PlanTensor *> at_peak;
    for (const toolkit::PlanTensor &t : r.tensors)
      if (t.first <= r.peak_step && r.peak_step <= t.last)
        at_peak.push_back(&t);
    std::stable_sort(at_peak.begin(), at_peak.end(),
                     [](const auto *a, const auto *b) { return a->bytes > b->bytes; });
    if (!at_peak.empty() && top_)
      std::printf("at the peak:\n  %12s %12s %9s %9s  %s\n", "bytes", "offset", "from", "to",
                  "tensor");
    for (size_t i = 0; i < at_peak.size() && i < top_; ++i) {
      const toolkit::PlanTensor &t = *at_peak[i];
      std::printf("  %12llu %12llu %9llu %9llu  %s (%s)%s\n", wide(t.bytes), wide(t.offset),
                  wide(t.first), wide(t.last), t.name.c_str(), t.op.c_str(),
                  t.aliases ? " with aliases" : "");
    }
    if (at_peak.size() > top_)
      std::printf("  ... %zu more (--top)\n", at_peak.size() - top_);
  }

  static void print_json(const toolkit::PlanReport &r, const toolkit::OrderReport &other,
                         std::FILE *to) {
    std::string out = "{";
    const auto number = [&](const char *key, u64 n) {
      out += (out.size() > 1 ? ",\"" : "\"") + std::string(key) + "\":" + std::to_string(n);
    };
    number("arena", r.arena);
    number("lower_bound", r.lower_bound);
    number("peak_step", r.peak_step);
    number("total", r.total);
    number("constants", r.constants);
    number("variables", r.variables);
    number("aliased", r.aliased);
    number("dynamic", r.dynamic);
    number("visited", r.work.ops_visited);
    number("order_bound", other.order_bound);
    out += ",\"reordered\":{\"arena\":" + std::to_string(other.plan.arena) +
           ",\"lower_bound\":" + std::to_string(other.plan.lower_bound) +
           ",\"better\":" + (other.better ? "true" : "false") + "}";
    out += ",\"method\":" + json_quote(r.method) + ",\n\"live\":[";
    for (size_t i = 0; i < r.live.size(); ++i)
      out += (i ? "," : "") + std::to_string(r.live[i]);
    out += "],\n\"tensors\":[";
    for (size_t i = 0; i < r.tensors.size(); ++i) {
      const toolkit::PlanTensor &t = r.tensors[i];
      out += (i ? ",\n " : "\n ") + ("{\"name\":" + json_quote(t.name)) +
             ",\"op\":" + json_quote(t.op) + ",\"bytes\":" + std::to_string(t.bytes) +
             ",\"aligned\":" + std::to_string(t.aligned) + ",\"first\":" + std::to_string(t.first) +
             ",\"last\":" + std::to_string(t.last) + ",\"offset\":" + std::to_string(t.offset) +
             ",\"aliases\":" + std::to_string(t.aliases) +
             ",\"input\":" + (t.input ? "true" : "false") +
             ",\"output\":" + (t.output ? "true" : "false") + "}";
    }
    std::fprintf(to, "%s]}\n", out.c_str());
  }

  std::string model_;
  std::string svg_;
  toolkit::PlanOptions options_;
  bool no_alias_ = false;
  u64 top_ = 10;
};

} // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<Plan>(); }

} // namespace chute::cli

#include "convert/explain.h"

#include "circle/writer.h"
#include "convert/pipelines.h"
#include "ir/sym_table.h"
#include "ir/walk.h"
#include "pt2/reader.h"
#include "tosa/coverage.h"
#include "tosa/npu.h"
#include "tosa/target.h"
#include "tosa/writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace chute::convert {

namespace {

constexpr size_t kLargest = 10;

using Tally = std::map<std::string, u64, std::less<>>;

Explanation::Counts ranked(const Tally &counts) {
  Explanation::Counts out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto &a, const auto &b) { return a.second > b.second; });
  return out;
}

std::string type_text(const ir::Graph &graph, ir::Type t) {
  std::string out(ir::element_type_name(t.element()));
  out += '[';
  for (int i = 0; i < t.rank(); ++i)
    out += (i ? "," : "") + graph.context().sym().print(t.dim(i));
  return out + ']';
}

std::string operator_name(const ir::Op &op) {
  return std::string(op.opcode() == ir::core_op::unregistered ? op.attr(0).as_string() : op.name());
}

Explanation::Counts count_operators(const ir::Graph &graph) {
  Tally tally;
  ir::walk(graph, [&](const ir::Op &op) {
    if (!op.has(ir::trait::kConstant) && !op.has(ir::trait::kTerminator))
      ++tally[operator_name(op)];
  });
  return ranked(tally);
}

void describe(const ir::Graph &graph, Explanation &out) {
  Tally elements, weights;
  ir::walk(graph, [&](const ir::Op &op) {
    for (const ir::Value &v : op.results())
      if (v.type() && v.type().is_tensor())
        ++elements[std::string(ir::element_type_name(v.type().element()))];
    if (!op.has(ir::trait::kConstant))
      return;
    const auto bytes = static_cast<u64>(op.attr(0).as_constant()->dense_bytes());
    const ir::Value *v = op.result();
    ++out.weight_count;
    out.weight_bytes += bytes;
    weights[std::string(ir::element_type_name(v->type().element()))] += bytes;
    if (out.largest.size() == kLargest && bytes <= out.largest.back().bytes)
      return;
    const auto at = std::find_if(out.largest.begin(), out.largest.end(),
                                 [bytes](const Weight &w) { return w.bytes < bytes; });
    out.largest.insert(
        at, {std::string(graph.context().string(v->name())), type_text(graph, v->type()), bytes});
    if (out.largest.size() > kLargest)
      out.largest.pop_back();
  });
  out.operators = count_operators(graph);
  out.element_types = ranked(elements);
  out.weight_types = ranked(weights);
  const ir::SymTable &sym = graph.context().sym();
  for (ir::SymInt s : sym.symbols()) {
    const ir::SymRange range = sym.range(s);
    const bool open = range.max == std::numeric_limits<i64>::max();
    out.sizes.push_back({std::string(sym.symbol_name(s)), range.min,
                         open ? std::nullopt : std::optional<i64>(range.max)});
  }
}

/// Sorts what a pass said into problems and notes. A legalization also meets the operators that
/// check-core has reported, with less to say about them.
void collect(const Diagnostics &said, std::set<std::string, std::less<>> &reported,
             Explanation &out) {
  for (const Diagnostic &d : said.all()) {
    if (d.severity != Severity::Error) {
      out.notes.push_back(d);
      continue;
    }
    const std::string name = operator_of(d);
    if (d.code == "aten.unsupported")
      reported.insert(name);
    else if (reported.contains(name) && d.kind == ErrorKind::Unsupported)
      continue;
    out.problems.push_back(d);
  }
}

/// Each node against the target. What fails is one problem per node.
void place(const ir::Graph &graph, const tosa::Target &target, std::optional<tosa::Npu> npu,
           const std::string &from, Explanation &out) {
  tosa::Coverages all = tosa::coverage(graph, target, npu);
  for (const tosa::Partition &p : all.partitions)
    out.partitions.push_back({p.nodes, p.operators});
  for (tosa::Coverage &c : all.rows) {
    Placement p{std::move(c.node), std::move(c.module_path), std::move(c.emitted), {}, c.partition};
    if (c.failed) {
      p.failed = c.failed->clause;
      Diagnostic d;
      d.kind = ErrorKind::Unsupported;
      d.code = c.failed->code;
      d.file = from;
      d.object = "%" + p.node + " " + (p.emitted.empty() ? std::string("?") : p.emitted.front());
      d.module_path = p.module_path;
      d.message = p.failed;
      d.hint = "leave it to the CPU, quantize what is on reals, or name a wider --target";
      out.problems.push_back(std::move(d));
    }
    out.placements.push_back(std::move(p));
  }
}

std::optional<u64> size_of_file(const ir::Graph &graph, Target target) {
  if (target == Target::Circle) {
    circle::WriteStats stats;
    return circle::write_bytes(graph, {}, &stats) ? std::optional(stats.bytes) : std::nullopt;
  }
  tosa::WriteStats stats;
  return tosa::write_bytes(graph, {}, &stats) ? std::optional(stats.bytes) : std::nullopt;
}

} // namespace

std::string operator_of(const Diagnostic &d) {
  constexpr std::string_view kUnknown = "core.unregistered '";
  const size_t space = d.object.find(' ');
  std::string name = space == std::string::npos ? d.object : d.object.substr(space + 1);
  if (name.starts_with(kUnknown) && name.ends_with('\''))
    name = name.substr(kUnknown.size(), name.size() - kUnknown.size() - 1);
  return name;
}

bool explain_pt2(const std::string &from, Target target, const ConvertOptions &options,
                 Diagnostics &diagnostics, Explanation &out) {
  std::optional<tosa::Target> required;
  const std::optional<tosa::Npu> npu = tosa::npu_of(options.requirements);
  if (npu) {
    required = tosa::npu_target(*npu);
  } else if (!options.requirements.empty()) {
    auto parsed = tosa::parse_target(options.requirements);
    if (!parsed) {
      diagnostics.add(std::move(parsed.error()));
      return false;
    }
    required = *parsed;
  }
  ir::Context ctx;
  pt2::ReadOptions read;
  read.threads = options.threads;
  read.model = options.model;
  read.size_hints = target != Target::Circle;
  pt2::Summary summary;
  auto graph = pt2::read(ctx, from, diagnostics, read, &summary);
  if (!graph) {
    diagnostics.add(std::move(graph.error()));
    return false;
  }
  out.torch_version = summary.torch_version;
  out.nodes = summary.nodes;
  describe(**graph, out);

  std::set<std::string, std::less<>> reported;
  std::vector<pass::PassRecord> records;
  pass::PipelineOptions pipeline = options.pipeline;
  if (target != Target::Circle)
    add_tosa_settings(summary.size_hints, pipeline.settings);
  const auto run = [&](const std::string &pass) {
    Diagnostics said;
    said.set_file(from);
    pass::run_pipeline(**graph, {pass}, said, pipeline, records);
    collect(said, reported, out);
    if (!said.has_errors())
      return true;
    // An operator without a lowering stays in the graph; anything else leaves it unusable, and a
    // legalization is the last pass that has something to say.
    const bool goes_on = said.first_error_kind() == ErrorKind::Unsupported &&
                         pass != "functionalize" && !pass.starts_with("legalize");
    if (!goes_on)
      out.stopped_after = pass;
    return goes_on;
  };
  const std::vector<std::string> &lowering =
      target == Target::Circle ? circle_pipeline() : tosa_pipeline();
  bool going = target == Target::Circle || run("fix-sizes");
  going = going && std::all_of(core_aten_pipeline().begin(), core_aten_pipeline().end(), run);
  going = going && std::all_of(lowering.begin(), lowering.end(), run);
  if (out.stopped_after.starts_with("legalize"))
    out.stopped_after.clear(); // nothing was missed
  if (!going || !out.problems.empty())
    return true;
  if (required)
    place(**graph, *required, npu, from, out);
  out.output_operators = count_operators(**graph);
  out.output_bytes = size_of_file(**graph, target);
  return true;
}

} // namespace chute::convert

#include "convert/explain.h"

#include <algorithm>
#include <cstdio>

// The two forms of an explanation: JSON for CI, text for a person.
namespace chute::convert {

namespace {

std::string_view name_of(Target t) {
  return t == Target::Circle ? "circle" : t == Target::Tosa ? "tosa" : "executorch";
}

std::string counts_json(const Explanation::Counts &counts) {
  std::string out = "{";
  for (const auto &[name, n] : counts)
    out += (out.size() > 1 ? "," : "") + json_quote(name) + ":" + std::to_string(n);
  return out + "}";
}

std::string list_json(const std::vector<Diagnostic> &list) {
  std::string out = "[";
  for (const Diagnostic &d : list)
    out += (out.size() > 1 ? ",\n  " : "\n  ") + to_json(d);
  return out + "]";
}

std::string size_text(u64 bytes) {
  char text[32];
  if (bytes < 100'000)
    std::snprintf(text, sizeof(text), "%llu bytes", static_cast<unsigned long long>(bytes));
  else
    std::snprintf(text, sizeof(text), "%.2f MB", static_cast<double>(bytes) * 1e-6);
  return text;
}

struct Row {
  std::string cells[3];
};

/// The operator, the module and the source line of each problem under one another; below each row
/// the reason and the way out.
std::string problem_table(const std::vector<Diagnostic> &problems) {
  std::vector<Row> rows{{{"operator", "module", "source"}}};
  for (const Diagnostic &d : problems) {
    rows.push_back({{operator_of(d), d.module_path.empty() ? "-" : d.module_path,
                     d.source_line.empty() ? "-" : d.source_line}});
  }
  size_t width[2] = {0, 0};
  for (const Row &r : rows)
    for (size_t i = 0; i < 2; ++i)
      width[i] = std::max(width[i], r.cells[i].size());
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row &r = rows[i];
    out += "  " + r.cells[0] + std::string(width[0] - r.cells[0].size() + 2, ' ') + r.cells[1] +
           std::string(width[1] - r.cells[1].size() + 2, ' ') + r.cells[2] + "\n";
    if (i == 0)
      continue;
    out += "      why: " + problems[i - 1].message + "\n";
    if (!problems[i - 1].hint.empty())
      out += "      do:  " + problems[i - 1].hint + "\n";
  }
  return out;
}

void add_counts(std::string &out, const char *title, const Explanation::Counts &counts) {
  if (counts.empty())
    return;
  out += title;
  out += ":\n";
  for (const auto &[name, n] : counts) {
    const std::string number = std::to_string(n);
    out += "  " + std::string(number.size() < 8 ? 8 - number.size() : 0, ' ') + number + "  " +
           name + "\n";
  }
}

} // namespace

std::string explanation_json(const std::string &input, Target target, const Explanation &e) {
  std::string out = "{\"input\":" + json_quote(input) + ",\"target\":\"";
  out += name_of(target);
  out += "\",\"converts\":";
  out += e.problems.empty() ? "true" : "false";
  out += ",\"torch\":" + json_quote(e.torch_version) + ",\"nodes\":" + std::to_string(e.nodes);
  out += ",\n\"problems\":" + list_json(e.problems);
  out += ",\n\"notes\":" + list_json(e.notes);
  out += ",\n\"stopped_after\":" + json_quote(e.stopped_after);
  out += ",\n\"operators\":" + counts_json(e.operators);
  out += ",\n\"element_types\":" + counts_json(e.element_types);
  out += ",\n\"dynamic_sizes\":[";
  for (size_t i = 0; i < e.sizes.size(); ++i) {
    const DynamicSize &s = e.sizes[i];
    out += (i ? "," : "") + ("{\"name\":" + json_quote(s.name)) +
           ",\"min\":" + std::to_string(s.min) +
           ",\"max\":" + (s.max ? std::to_string(*s.max) : "null") + "}";
  }
  out += "],\n\"weights\":{\"count\":" + std::to_string(e.weight_count) +
         ",\"bytes\":" + std::to_string(e.weight_bytes) +
         ",\"bytes_by_type\":" + counts_json(e.weight_types) + ",\"largest\":[";
  for (size_t i = 0; i < e.largest.size(); ++i) {
    const Weight &w = e.largest[i];
    out += (i ? "," : "") + ("{\"name\":" + json_quote(w.name)) +
           ",\"type\":" + json_quote(w.type) + ",\"bytes\":" + std::to_string(w.bytes) + "}";
  }
  out += "]},\n\"output\":";
  if (e.output_bytes)
    out += "{\"bytes\":" + std::to_string(*e.output_bytes) +
           ",\"operators\":" + counts_json(e.output_operators) + "}";
  else
    out += "null";
  out += ",\n\"placements\":[";
  for (size_t i = 0; i < e.placements.size(); ++i) {
    const Placement &p = e.placements[i];
    out += (i ? ",\n " : "") + ("{\"node\":" + json_quote(p.node)) +
           ",\"module\":" + json_quote(p.module_path) +
           ",\"accepted\":" + (p.failed.empty() ? "true" : "false") +
           ",\"failed\":" + json_quote(p.failed) +
           ",\"partition\":" + (p.partition < 0 ? "null" : std::to_string(p.partition)) +
           ",\"emitted\":[";
    for (size_t k = 0; k < p.emitted.size(); ++k)
      out += (k ? "," : "") + json_quote(p.emitted[k]);
    out += "]}";
  }
  out += "],\n\"partitions\":[";
  for (size_t i = 0; i < e.partitions.size(); ++i)
    out += (i ? "," : "") + ("{\"nodes\":" + std::to_string(e.partitions[i].nodes)) +
           ",\"operators\":" + std::to_string(e.partitions[i].operators) + "}";
  return out + "]}\n";
}

std::string explanation_text(const std::string &input, Target target, const Explanation &e) {
  std::string out = input + " to " + std::string(name_of(target)) + ": ";
  if (e.problems.empty())
    out += "converts\n";
  else
    out += std::to_string(e.problems.size()) +
           (e.problems.size() == 1 ? " problem\n" : " problems\n") + problem_table(e.problems);
  if (!e.stopped_after.empty())
    out += "  nothing past `" + e.stopped_after + "` could be looked at; there may be more\n";
  for (const Diagnostic &d : e.notes)
    out += to_text(d) + "\n";
  out += std::to_string(e.nodes) + " nodes, torch " + e.torch_version + "\n";
  add_counts(out, "operators", e.operators);
  add_counts(out, "element types of values", e.element_types);
  if (!e.sizes.empty())
    out += "dynamic sizes:\n";
  for (const DynamicSize &s : e.sizes)
    out += "  " + s.name + " in [" + std::to_string(s.min) + ", " +
           (s.max ? std::to_string(*s.max) : "inf") + "]\n";
  out += std::to_string(e.weight_count) + " weights, " + size_text(e.weight_bytes) + "\n";
  for (const Weight &w : e.largest)
    out += "  " + size_text(w.bytes) + "  " + w.name + " " + w.type + "\n";
  if (!e.output_bytes)
    return out;
  u64 total = 0;
  for (const auto &[name, n] : e.output_operators)
    total += n;
  out += "output: " + std::to_string(total) + " operators, " + size_text(*e.output_bytes) + "\n";
  add_counts(out, "operators of the output", e.output_operators);
  if (e.placements.empty())
    return out;
  size_t taken = 0;
  for (const Placement &p : e.placements)
    taken += p.failed.empty() ? 1 : 0;
  out += "placement: " + std::to_string(taken) + " of " + std::to_string(e.placements.size()) +
         " nodes on the target in " + std::to_string(e.partitions.size()) +
         (e.partitions.size() == 1 ? " partition" : " partitions") + ", the others on the CPU\n";
  for (const Placement &p : e.placements) {
    std::string where = p.partition < 0 ? "cpu" : "target " + std::to_string(p.partition);
    where.resize(std::max<size_t>(where.size() + 2, 11), ' ');
    out += "  " + where;
    out += p.node + (p.module_path.empty() ? "" : " (" + p.module_path + ")") + ": ";
    for (size_t k = 0; k < p.emitted.size(); ++k)
      out += (k ? ", " : "") + p.emitted[k];
    out += p.failed.empty() ? "\n" : "; " + p.failed + "\n";
  }
  return out;
}

} // namespace chute::convert

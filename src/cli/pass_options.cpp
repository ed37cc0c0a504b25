#include "cli/pass_options.h"

#include "ir/text.h"
#include "support/text_file.h"

#include <algorithm>
#include <cstdio>
#include <span>

namespace chute::cli {

namespace {

/// What passes look up in their settings; a name that none of them reads is a spelling mistake.
constexpr std::string_view kSettings[] = {
    "fold_growth_limit", "fold_profile", "io_layout",  "mx",     "quant_io", "state",
    "tosa_profile",      "sizes",        "size_hints", "target",
};
/// Those that are true or false, as in TICO's configuration (circle/passes/tico_switches.cpp).
constexpr std::string_view kSwitches[] = {
    "segment_index_select",        "circle_optimize",
    "convert_expand_to_slice_cat", "convert_lhs_const_mm_to_fc",
    "convert_rhs_const_mm_to_fc",  "convert_single_batch_lhs_const_bmm_to_fc",
    "eliminate_rank_round_trip",   "legalize_causal_mask_value",
    "remove_constant_input",
};
bool is_switch(std::string_view name) {
  return std::ranges::find(kSwitches, name) != std::end(kSwitches);
}
bool is_setting(std::string_view name) {
  return is_switch(name) || std::ranges::find(kSettings, name) != std::end(kSettings);
}
std::string known_settings() {
  std::string list;
  using Names = std::span<const std::string_view>;
  for (const Names names : {Names(kSettings), Names(kSwitches)})
    for (const std::string_view name : names)
      list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t' || s.front() == '\r'))
    s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  if (s.size() >= 2 && (s.front() == '"' || s.front() == '\'') && s.back() == s.front())
    s = s.substr(1, s.size() - 2);
  return s;
}

/// YAML's spellings of a truth value, and numbers; empty for anything else.
std::string_view truth(std::string_view s) {
  for (const std::string_view yes : {"true", "True", "TRUE", "1", "yes", "on"})
    if (s == yes)
      return "true";
  for (const std::string_view no : {"false", "False", "FALSE", "0", "no", "off"})
    if (s == no)
      return "false";
  return {};
}

} // namespace

void PassOptions::declare(Args &args) {
  args.option("--print-after", print_after_,
              "Print the graph to standard error after these passes (or `all`)");
  args.flag("--verify-each", verify_each_, "Verify the graph after every pass");
  args.flag("--stats", stats_, "Print time, work counters and rewrites per pass to standard error");
  args.option("--stop-after", stop_after_, "Stop after this many rewrites (bisecting)");
  args.option("--set", set_, "A pass setting as name=value");
  args.option("--config", config_, "Read settings from a TICO configuration file (YAML)");
}

/// The file is flat: `name: value` per line, `#` begins a comment, `version` has to be 1.0. Later
/// --set options win.
void PassOptions::read_config(const AssignFn &assign, const UsageFn &usage) const {
  auto file = read_text(config_);
  if (!file)
    return usage("cli.config", file.error().message, "name a readable YAML file");
  std::string_view rest = *file;
  bool version = false;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (const size_t comment = line.find('#'); comment != line.npos)
      line = line.substr(0, comment);
    if (trimmed(line).empty() || trimmed(line) == "---")
      continue;
    const std::string where = config_ + ":" + std::to_string(number) + ": ";
    const size_t colon = line.find(':');
    if (colon == line.npos) {
      usage("cli.config", where + "is not `name: value`", "write one setting per line");
      continue;
    }
    const std::string_view name = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (name != "version") {
      assign(name, value, where);
      continue;
    }
    version = true;
    if (value != "1.0")
      usage("cli.config", where + "version '" + std::string(value) + "' is not known",
            "only version 1.0 exists");
  }
  if (!version)
    usage("cli.config", config_ + " has no version", "begin it with `version: '1.0'`");
}

bool PassOptions::fill(pass::PipelineOptions &out, Diagnostics &diagnostics) const {
  out.verify_each = verify_each_;
  out.collect_stats = stats_;
  out.rewrite_limit = stop_after_;
  const size_t errors = diagnostics.error_count();
  const auto usage = [&](std::string code, std::string message, std::string hint) {
    Diagnostic d;
    d.kind = ErrorKind::Usage;
    d.code = std::move(code);
    d.message = std::move(message);
    d.hint = std::move(hint);
    diagnostics.add(std::move(d));
  };
  const auto assign = [&](std::string_view name, std::string_view value, const std::string &where) {
    if (!is_setting(name))
      return usage("cli.set", where + "no pass has a setting '" + std::string(name) + "'",
                   "the settings are: " + known_settings());
    if (!is_switch(name)) {
      out.settings[std::string(name)] = value;
      return;
    }
    const std::string_view on = truth(value);
    if (on.empty())
      return usage("cli.set",
                   where + "'" + std::string(name) + "' is true or false, not '" +
                       std::string(value) + "'",
                   "for example " + std::string(name) + "=true");
    out.settings[std::string(name)] = on;
  };
  if (!config_.empty())
    read_config(assign, usage);
  for (const std::string &s : set_) {
    const size_t equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      usage("cli.set", "'" + s + "' is not name=value", "for example --set fold_growth_limit=2");
    else
      assign(std::string_view(s).substr(0, equals), std::string_view(s).substr(equals + 1), {});
  }
  for (const std::string &name : print_after_)
    if (name != "all" && !pass::PassRegistry::global().find(name))
      usage("pass.unknown", "no pass is called '" + name + "'", "`chute passes` lists them");
  if (!print_after_.empty())
    out.after_pass = [names = print_after_](const pass::PassRecord &record,
                                            const ir::Graph &graph) {
      if (names.front() == "all" ||
          std::find(names.begin(), names.end(), record.name) != names.end())
        std::fprintf(stderr, "// after %s\n%s\n", record.name.c_str(), ir::print(graph).c_str());
    };
  return diagnostics.error_count() == errors;
}

std::string PassOptions::stats_text(const std::vector<pass::PassRecord> &records) {
  std::string out;
  char line[256];
  const auto add = [&](auto... args) {
    std::snprintf(line, sizeof(line), args...);
    out += line;
  };
  add("%-28s %9s %9s %9s %10s %10s %9s %10s\n", "pass", "ms", "ops in", "ops out", "visited",
      "tried", "rewrites", "enqueues");
  for (const pass::PassRecord &r : records) {
    add("%-28s %9.2f %9llu %9llu %10llu %10llu %9llu %10llu\n", r.name.c_str(), r.seconds * 1e3,
        static_cast<unsigned long long>(r.ops_before), static_cast<unsigned long long>(r.ops_after),
        static_cast<unsigned long long>(r.counters.ops_visited),
        static_cast<unsigned long long>(r.counters.patterns_tried),
        static_cast<unsigned long long>(r.counters.rewrites),
        static_cast<unsigned long long>(r.counters.enqueues));
    for (const pass::PatternStats &p : r.patterns) {
      if (p.tried == 0)
        continue;
      add("  %-36.*s tried %8llu  rewrites %8llu\n", static_cast<int>(p.name.size()), p.name.data(),
          static_cast<unsigned long long>(p.tried), static_cast<unsigned long long>(p.rewrites));
      for (const auto &[reason, count] : p.rejections)
        add("    rejected %8llu: %.*s\n", static_cast<unsigned long long>(count),
            static_cast<int>(reason.size()), reason.data());
    }
  }
  return out;
}

std::string PassOptions::stats_json(const std::vector<pass::PassRecord> &records) {
  std::string out = "[";
  const auto number = [&](const char *name, u64 value) {
    out += ",\"" + std::string(name) + "\":" + std::to_string(value);
  };
  for (const pass::PassRecord &r : records) {
    out += (out.size() > 1 ? ",\n " : "\n ") + ("{\"pass\":" + json_quote(r.name));
    number("microseconds", static_cast<u64>(r.seconds * 1e6));
    number("ops_before", r.ops_before);
    number("ops_after", r.ops_after);
    number("ops_visited", r.counters.ops_visited);
    number("patterns_tried", r.counters.patterns_tried);
    number("rewrites", r.counters.rewrites);
    number("enqueues", r.counters.enqueues);
    number("bytes_hashed", r.counters.bytes_hashed);
    number("bytes_copied", r.counters.bytes_copied);
    out += ",\"patterns\":[";
    bool first = true;
    for (const pass::PatternStats &p : r.patterns) {
      out += (first ? "" : ",") + ("{\"name\":" + json_quote(p.name));
      first = false;
      number("tried", p.tried);
      number("rewrites", p.rewrites);
      out += ",\"rejections\":{";
      for (size_t i = 0; i < p.rejections.size(); ++i)
        out += (i ? "," : "") + json_quote(p.rejections[i].first) + ":" +
               std::to_string(p.rejections[i].second);
      out += "}}";
    }
    out += "]}";
  }
  return out + "\n]\n";
}

} // namespace chute::cli

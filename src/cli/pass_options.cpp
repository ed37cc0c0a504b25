#include "cli/pass_options.h"

#include "ir/text.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace chute::cli {

namespace {

/// What passes look up in their settings; a name that none of them reads is a spelling mistake.
constexpr std::array<std::string_view, 3> kSettings{"fold_growth_limit", "mx", "quant_io"};

std::string joined_settings() {
  std::string text;
  for (std::string_view name : kSettings)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

} // namespace

void PassOptions::declare(Args &args) {
  args.option("--print-after", print_after_,
              "Print the graph to standard error after these passes (or `all`)");
  args.flag("--verify-each", verify_each_, "Verify the graph after every pass");
  args.flag("--stats", stats_, "Print time, work counters and rewrites per pass to standard error");
  args.option("--stop-after", stop_after_, "Stop after this many rewrites (bisecting)");
  args.option("--set", set_, "A pass setting as name=value");
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
  for (const std::string &s : set_) {
    const size_t equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      usage("cli.set", "'" + s + "' is not name=value", "for example --set fold_growth_limit=2");
    else if (const auto name = std::string_view(s).substr(0, equals);
             std::find(kSettings.begin(), kSettings.end(), name) == kSettings.end())
      usage("cli.set", "no pass has a setting '" + std::string(name) + "'",
            "the settings are: " + joined_settings());
    else
      out.settings[s.substr(0, equals)] = s.substr(equals + 1);
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

#include "toolkit/diff.h"

#include "cli/graph_file.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace chute::cli {

namespace {

class Diff final : public Command {
public:
  std::string_view summary() const override {
    return "Show what differs between two models, aligned by structure, not by name or position";
  }
  std::string_view examples() const override {
    return "  chute diff before.circle after.circle\n"
           "  chute diff a.circle b.circle --json | jq .changes\n"
           "  chute diff a.circle b.circle --names --most 1000\n"
           "Exit code 0: no difference; 1: some; 2 and above: an error.";
  }
  void declare(Args &args) override {
    args.positional("before", before_,
                    "A .circle, .tflite, .pt2 or text IR file; - for standard input");
    args.positional("after", after_, "The file to compare with it");
    args.flag("--names", options_.names, "Report tensors of another name, too");
    args.option("--most", most_, "List at most so many changes as text (default 100)");
  }

  int run(Session &session) override {
    ir::Context ctx;
    auto a = open_graph(ctx, before_, false, session);
    if (!a)
      return session.fail(std::move(a.error()));
    auto b = open_graph(ctx, after_, false, session);
    if (!b)
      return session.fail(std::move(b.error()));
    toolkit::DiffReport report = toolkit::diff(*a->model.graph, *b->model.graph, options_);
    file_facts(a->model, b->model, report);
    if (session.json)
      print_json(report);
    else
      print_text(report);
    const int code = session.finish();
    return code != 0 ? code : report.equal() ? 0 : static_cast<int>(ErrorKind::Failure);
  }

private:
  /// What a Circle file says beside its graph.
  static void file_facts(const circle::Model &a, const circle::Model &b,
                         toolkit::DiffReport &report) {
    if (a.signature_key != b.signature_key)
      report.interface.push_back({"signature key", a.signature_key, b.signature_key});
    if (a.more.size() != b.more.size())
      report.interface.push_back({"number of further subgraphs", std::to_string(a.more.size()),
                                  std::to_string(b.more.size())});
    for (size_t i = 0; i < std::min(a.more.size(), b.more.size()); ++i)
      if (const auto inner = toolkit::diff(*a.more[i], *b.more[i]); !inner.equal())
        report.interface.push_back(
            {"subgraph '" + a.more[i]->name() + "'",
             std::to_string(inner.operators_a) + " operators",
             std::to_string(inner.operators_b) + " operators: " + std::to_string(inner.changed) +
                 " changed, " + std::to_string(inner.removed) + " removed, " +
                 std::to_string(inner.added) + " added, " + std::to_string(inner.constants.size()) +
                 " constants differ"});
    const auto keys = [](const circle::Model &m) {
      std::string out;
      for (const circle::Signature &s : m.signatures)
        out += (out.empty() ? "" : ", ") + s.key;
      return out;
    };
    if (!a.signatures.empty() && !b.signatures.empty() && keys(a) != keys(b))
      report.interface.push_back({"signatures", keys(a), keys(b)});
    const auto table = [](const circle::Model &m) {
      std::map<std::string, std::string> out;
      for (const auto &[name, content] : m.metadata)
        out[name] = content;
      return out;
    };
    const auto before = table(a), after = table(b);
    for (const auto &[name, content] : before)
      if (const auto it = after.find(name); it == after.end())
        report.interface.push_back({"metadata " + name, "present", "absent"});
      else if (it->second != content)
        report.interface.push_back({"metadata " + name, std::to_string(content.size()) + " bytes",
                                    "other " + std::to_string(it->second.size()) + " bytes"});
    for (const auto &[name, content] : after)
      if (!before.contains(name))
        report.interface.push_back({"metadata " + name, "absent", "present"});
  }

  static std::string constant_text(const toolkit::ConstantChange &c) {
    std::string name = c.name_a == c.name_b ? c.name_a : c.name_a + " -> " + c.name_b;
    std::string out = "constant " + name + ": ";
    if (c.type_a != c.type_b)
      out += c.type_a + " -> " + c.type_b + " ";
    else
      out += c.type_a + " ";
    if (!c.comparable)
      return out + "(other content)";
    char text[96];
    std::snprintf(text, sizeof(text), "%lld of %lld elements differ, by %.6g at most",
                  static_cast<long long>(c.differing), static_cast<long long>(c.elements),
                  c.max_abs);
    return out + text;
  }

  void print_text(const toolkit::DiffReport &r) const {
    for (const toolkit::Detail &d : r.interface)
      std::printf("interface: %s: %s -> %s\n", d.what.c_str(), d.before.c_str(), d.after.c_str());
    u64 left = most_;
    for (const toolkit::Change &c : r.changes) {
      if (left-- == 0)
        break;
      const char mark = c.kind == toolkit::ChangeKind::Removed ? '-'
                        : c.kind == toolkit::ChangeKind::Added ? '+'
                                                               : '~';
      std::printf("%c %s '%s'", mark, c.op.c_str(), c.name.c_str());
      if (c.position_a >= 0)
        std::printf(" [%lld]", static_cast<long long>(c.position_a));
      if (c.position_b >= 0)
        std::printf(c.position_a >= 0 ? " -> [%lld]" : " [%lld]",
                    static_cast<long long>(c.position_b));
      if (!c.module_path.empty())
        std::printf(" in %s", c.module_path.c_str());
      std::printf("\n");
      for (const toolkit::Detail &d : c.details)
        std::printf("    %s: %s -> %s\n", d.what.c_str(), d.before.c_str(), d.after.c_str());
    }
    if (r.changes.size() > most_)
      std::printf("... %zu more changes (--most)\n", r.changes.size() - most_);
    left = most_;
    for (const toolkit::ConstantChange &c : r.constants) {
      if (left-- == 0)
        break;
      std::printf("%s\n", constant_text(c).c_str());
    }
    if (r.constants.size() > most_)
      std::printf("... %zu more constants (--most)\n", r.constants.size() - most_);
    if (r.equal())
      std::printf("no difference: %llu operators\n", static_cast<unsigned long long>(r.same));
    else
      std::printf("%llu operators alike, %llu changed, %llu removed, %llu added, %zu constants "
                  "differ\n",
                  static_cast<unsigned long long>(r.same),
                  static_cast<unsigned long long>(r.changed),
                  static_cast<unsigned long long>(r.removed),
                  static_cast<unsigned long long>(r.added), r.constants.size());
  }

  static std::string json_of(const std::vector<toolkit::Detail> &details) {
    std::string out = "[";
    for (const toolkit::Detail &d : details)
      out += (out.size() > 1 ? "," : "") + ("{\"what\":" + json_quote(d.what)) +
             ",\"before\":" + json_quote(d.before) + ",\"after\":" + json_quote(d.after) + "}";
    return out + "]";
  }

  static void print_json(const toolkit::DiffReport &r) {
    static constexpr const char *kKinds[] = {"removed", "added", "changed"};
    std::string out = "{\"equal\":" + std::string(r.equal() ? "true" : "false");
    const auto number = [&](const char *key, u64 n) {
      out += ",\"" + std::string(key) + "\":" + std::to_string(n);
    };
    number("same", r.same);
    number("changed", r.changed);
    number("removed", r.removed);
    number("added", r.added);
    number("operators_before", r.operators_a);
    number("operators_after", r.operators_b);
    number("visited", r.work.ops_visited);
    out += ",\n\"interface\":" + json_of(r.interface) + ",\n\"changes\":[";
    bool first = true;
    for (const toolkit::Change &c : r.changes) {
      out += (first ? "\n " : ",\n ") +
             ("{\"kind\":\"" + std::string(kKinds[static_cast<size_t>(c.kind)])) +
             "\",\"op\":" + json_quote(c.op) + ",\"name\":" + json_quote(c.name) +
             ",\"module\":" + json_quote(c.module_path) +
             ",\"before\":" + std::to_string(c.position_a) +
             ",\"after\":" + std::to_string(c.position_b) + ",\"details\":" + json_of(c.details) +
             "}";
      first = false;
    }
    out += "],\n\"constants\":[";
    first = true;
    for (const toolkit::ConstantChange &c : r.constants) {
      char max_abs[40] = "null";
      if (c.comparable && c.max_abs <= std::numeric_limits<double>::max())
        std::snprintf(max_abs, sizeof(max_abs), "%.17g", c.max_abs);
      out += (first ? "\n " : ",\n ") + ("{\"before\":" + json_quote(c.name_a)) +
             ",\"after\":" + json_quote(c.name_b) + ",\"type_before\":" + json_quote(c.type_a) +
             ",\"type_after\":" + json_quote(c.type_b) + ",\"max_abs\":" + max_abs +
             ",\"differing\":" + std::to_string(c.differing) +
             ",\"elements\":" + std::to_string(c.elements) + "}";
      first = false;
    }
    std::printf("%s]}\n", out.c_str());
  }

  std::string before_;
  std::string after_;
  toolkit::DiffOptions options_;
  u64 most_ = 100;
};

} // namespace

std::unique_ptr<Command> make_diff() { return std::make_unique<Diff>(); }

} // namespace chute::cli

#include "toolkit/extract.h"

#include "cli/graph_file.h"

#include "toolkit/model.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace chute::cli {

namespace {

std::string ranges(const std::vector<u64> &positions) {
  std::string out;
  for (size_t i = 0; i < positions.size();) {
    size_t last = i;
    while (last + 1 < positions.size() && positions[last + 1] == positions[last] + 1)
      ++last;
    out += (out.empty() ? "" : ",") + std::to_string(positions[i]);
    if (last > i)
      out += "-" + std::to_string(positions[last]);
    i = last + 1;
  }
  return out;
}

std::string quoted(const std::vector<std::string> &names) {
  std::string out = "[";
  for (const std::string &n : names)
    out += (out.size() > 1 ? "," : "") + json_quote(n);
  return out + "]";
}

std::string listed(const std::vector<std::string> &names) {
  constexpr size_t kMost = 12;
  std::string out;
  for (size_t i = 0; i < names.size() && i < kMost; ++i)
    out += (i ? ", " : "") + names[i];
  if (names.size() > kMost)
    out += " and " + std::to_string(names.size() - kMost) + " more";
  return out.empty() ? "none" : out;
}

class Extract final : public Command {
public:
  std::string_view summary() const override {
    return "Cut a part out of a model: operators by position, name, module, or between tensors";
  }
  std::string_view examples() const override {
    return "  chute extract model.circle --ops 3,10-25 -o part.circle\n"
           "  chute extract model.circle --module blk3 -o block.circle\n"
           "  chute extract model.circle --from blk2.out --to blk3.qk,blk3.pv -o part.circle\n"
           "  chute extract model.circle --names '*softmax*' -o part.circle\n"
           "  chute extract model.circle --regex --from '^blk2\\.' --to 'blk3\\.out$' -o - | "
           "chute verify -\n"
           "--ops, --names and --module are united; --from and --to cut their part out of that, or "
           "of the\nwhole model. A .pt2 is lowered to Circle first. Exit code 2: the selection "
           "means nothing.";
  }
  void declare(Args &args) override {
    args.positional("model", model_,
                    "A .circle, .tflite, .pt2 or text IR file; - for standard input");
    args.option("-o,--output", output_,
                "Write here (.circle, or text for .ir); - for standard output", true);
    args.option("--signature", signature_, "Cut out of the subgraph of this signature");
    args.option("--subgraph", subgraph_, "Cut out of the subgraph with this index (from 0)");
    args.option("--ops", ops_, "Positions of operators: 3,5-9,12:20 (ends included)");
    args.option("--names", selection_.names, "Operators whose results have these names (globs)");
    args.option("--module", selection_.modules, "Operators of these modules (prefixes of names)");
    args.option("--from", selection_.from, "Tensors at which the part begins (names or globs)");
    args.option("--to", selection_.to, "Tensors at which the part ends");
    args.option("--from-tensor", from_regex_, "The same as a regular expression (as tico-circle)");
    args.option("--to-tensor", to_regex_, "The same as a regular expression (as tico-circle)");
    args.flag("--regex", selection_.regex, "--names, --from and --to are regular expressions");
    args.flag("--full-match", selection_.full_match, "Regular expressions match whole names");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    for (const std::string &part : ops_)
      selection_.ops += (selection_.ops.empty() ? "" : ",") + part;
    if (!from_regex_.empty() || !to_regex_.empty()) {
      if (!selection_.from.empty() || !selection_.to.empty() || !selection_.names.empty())
        return session.fail(
            fail(ErrorKind::Usage, "cli.extract.mixed",
                 "--from-tensor and --to-tensor do not go with --from, --to and --names", {},
                 "use --from and --to with --regex for all of them")
                .value());
      selection_.from = from_regex_;
      selection_.to = to_regex_;
      selection_.regex = true;
    }
    ir::Context ctx;
    if (subgraph_ != kWhole && !signature_.empty())
      return session.fail(fail(ErrorKind::Usage, "cli.extract.mixed",
                               "--subgraph and --signature both say which subgraph is meant", {},
                               "give one of them")
                              .value());
    auto file = open_graph(ctx, model_, true, session,
                           subgraph_ == kWhole ? std::optional<u32>()
                                               : static_cast<u32>(std::min<u64>(subgraph_, ~0u)));
    if (!file)
      return session.fail(std::move(file.error()));
    if (subgraph_ != kWhole && subgraph_ != 0 && file->format != FileFormat::Circle)
      return session.fail(fail(ErrorKind::Usage, "cli.extract.subgraph",
                               "a program of this format has one graph, which is subgraph 0", {},
                               "leave --subgraph out")
                              .value());
    if (!signature_.empty())
      if (Status s = choose_signature(file->model); !s)
        return session.fail(std::move(s.error()));
    auto report = toolkit::extract(*file->model.graph, selection_);
    if (!report)
      return session.fail(std::move(report.error()));
    toolkit::keep_one_graph(file->model);
    if (Status s = save_graph(*file, output_); !s)
      return session.fail(std::move(s.error()));
    const auto number = [](u64 n) { return std::to_string(n); };
    say(session, output_,
        output_ + ": " + number(report->operators) + " of " + number(report->operators_before) +
            " operators\n  inputs:  " + listed(report->inputs) +
            "\n  outputs: " + listed(report->outputs) + "\n",
        "{\"output\":" + json_quote(output_) + ",\"operators\":" + number(report->operators) +
            ",\"operators_before\":" + number(report->operators_before) +
            ",\"positions\":" + json_quote(ranges(report->positions)) +
            ",\"inputs\":" + quoted(report->inputs) + ",\"outputs\":" + quoted(report->outputs) +
            ",\"visited\":" + number(report->work.ops_visited) + "}");
    return session.finish();
  }

private:
  /// Makes the graph of a signature the main one, under the names that the signature gives.
  Status choose_signature(circle::Model &model) const {
    std::string keys;
    for (const circle::Signature &s : model.signatures) {
      keys += (keys.empty() ? "" : ", ") + s.key;
      if (s.key != signature_)
        continue;
      if (s.graph > 0)
        std::swap(model.graph, model.more[s.graph - 1]);
      for (const circle::SignaturePort &p : s.inputs)
        model.graph->inputs()[p.position].name = p.name;
      for (const circle::SignaturePort &p : s.outputs)
        model.graph->outputs()[p.position].name = p.name;
      model.signature_key = s.key;
      return {};
    }
    return fail(ErrorKind::Usage, "toolkit.select.signature",
                "there is no signature '" + signature_ + "'", {},
                keys.empty() ? "the file has none" : "there are: " + keys);
  }

  std::string model_;
  std::string output_;
  static constexpr u64 kWhole = ~u64{0};
  std::string signature_;
  u64 subgraph_ = kWhole;
  std::vector<std::string> ops_;
  std::vector<std::string> from_regex_;
  std::vector<std::string> to_regex_;
  toolkit::Selection selection_;
};

} // namespace

std::unique_ptr<Command> make_extract() { return std::make_unique<Extract>(); }

} // namespace chute::cli

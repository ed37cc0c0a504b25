#include "toolkit/merge.h"

#include "cli/graph_file.h"

#include <cstdio>

namespace chute::cli {

namespace {

class Merge final : public Command {
public:
  std::string_view summary() const override {
    return "Join models: one behind the other, side by side, or as signatures of one file";
  }
  std::string_view examples() const override {
    return "  chute merge encoder.circle decoder.circle -o both.circle\n"
           "  chute merge a.circle b.circle --connect hidden=x,mask=m -o both.circle\n"
           "  chute merge a.circle b.circle --mode side-by-side --share-inputs -o both.circle\n"
           "  chute merge prefill.circle decode.circle --mode signatures -o llm.circle\n"
           "A chain connects outputs to inputs of the same name, or by position when no name fits. "
           "Names that\ntwo models have get a suffix in the later one. Equal constants are stored "
           "once.";
  }
  void declare(Args &args) override {
    args.positional("models", models_, "Two or more .circle, .tflite, .pt2 or text IR files");
    args.option("-o,--output", output_,
                "Write here (.circle, or text for .ir); - for standard output", true);
    args.choice("--mode", mode_, {"chain", "side-by-side", "signatures"}, "How they are joined");
    args.option("--connect", connect_, "Chain: OUTPUT=INPUT pairs instead of equal names");
    args.flag("--keep-outputs", options_.keep_outputs, "Chain: outputs that feed an input stay");
    args.flag("--share-inputs", options_.share_inputs, "Inputs of one name and type are one input");
  }

  int run(Session &session) override {
    options_.mode = mode_ == "chain"          ? toolkit::MergeMode::Chain
                    : mode_ == "side-by-side" ? toolkit::MergeMode::SideBySide
                                              : toolkit::MergeMode::Signatures;
    for (const std::string &pair : connect_) {
      const size_t at = pair.find('=');
      if (at == std::string::npos || at == 0 || at + 1 == pair.size() ||
          options_.mode != toolkit::MergeMode::Chain)
        return session.fail(fail(ErrorKind::Usage, "cli.merge.connect",
                                 "'" + pair + "' is not OUTPUT=INPUT of a chain", {},
                                 "for example --connect hidden=x")
                                .value());
      options_.connect.emplace_back(pair.substr(0, at), pair.substr(at + 1));
    }
    if (models_.size() < 2)
      return session.fail(fail(ErrorKind::Usage, "cli.merge.models",
                               "two models or more are merged", {}, "chute merge A B -o OUT")
                              .value());
    ir::Context ctx;
    GraphFile out;
    std::vector<circle::Model> models;
    for (const std::string &path : models_) {
      auto file = open_graph(ctx, path, true, session);
      if (!file)
        return session.fail(std::move(file.error()));
      if (models.empty())
        out.format = file->format;
      models.push_back(std::move(file->model));
    }
    // The graphs view the files' bytes, which each of their constants keeps alive.
    auto report = toolkit::merge(models, options_);
    if (!report)
      return session.fail(std::move(report.error()));
    out.model = std::move(models[0]);
    if (Status s = save_graph(out, output_); !s)
      return session.fail(std::move(s.error()));
    print(session, *report);
    return session.finish();
  }

private:
  void print(const Session &session, const toolkit::MergeReport &r) const {
    std::string text = output_ + ": " + std::to_string(models_.size()) + " models, " +
                       std::to_string(r.inputs.size()) + " inputs, " +
                       std::to_string(r.outputs.size()) + " outputs\n";
    std::string json = "{\"output\":" + json_quote(output_) + ",\"connections\":[";
    for (const auto &c : r.connections) {
      text += "  " + c.output + " feeds " + c.input + " of " + models_[c.model] + "\n";
      json += (json.back() == '[' ? "" : ",") + ("{\"output\":" + json_quote(c.output)) +
              ",\"input\":" + json_quote(c.input) + ",\"model\":" + std::to_string(c.model) + "}";
    }
    json += "],\"renamed\":[";
    for (const auto &n : r.renamed) {
      text += "  " + n.before + " of " + models_[n.model] + " is called " + n.after + "\n";
      json += (json.back() == '[' ? "" : ",") + ("{\"before\":" + json_quote(n.before)) +
              ",\"after\":" + json_quote(n.after) + ",\"model\":" + std::to_string(n.model) + "}";
    }
    const auto list = [&](const char *key, const std::vector<std::string> &names) {
      json += "],\"" + std::string(key) + "\":[";
      for (const std::string &n : names)
        json += (json.back() == '[' ? "" : ",") + json_quote(n);
    };
    list("inputs", r.inputs);
    list("outputs", r.outputs);
    say(session, output_, text, json + "]}");
  }

  std::vector<std::string> models_;
  std::string output_;
  std::string mode_ = "chain";
  std::vector<std::string> connect_;
  toolkit::MergeOptions options_;
};

} // namespace

std::unique_ptr<Command> make_merge() { return std::make_unique<Merge>(); }

} // namespace chute::cli

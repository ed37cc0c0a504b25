#include "cli/pass_options.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/text_file.h"

#include <cstdio>

namespace chute::cli {

namespace {

constexpr std::string_view kSeparator = "\n// -----";

class Opt final : public Command {
public:
  std::string_view summary() const override { return "Run named passes on text IR"; }
  std::string_view examples() const override {
    return "  chute opt model.ir -p normalize,decompose\n"
           "  chute opt - -p cse,dce --verify-each --stats < model.ir\n"
           "  chute opt model.ir -p decompose --stop-after 12";
  }
  void declare(Args &args) override {
    args.positional("input", input_, "Text IR; - for standard input");
    args.option("-p,--passes", passes_, "Passes in order, separated by commas");
    args.option("-o,--output", output_, "Write here instead of standard output");
    options_.declare(args);
  }

  int run(Session &session) override {
    Result<std::string> text = read_text(input_);
    if (!text)
      return session.fail(std::move(text.error()));
    pass::PipelineOptions pipeline;
    if (!options_.fill(pipeline, session.diagnostics))
      return session.finish();
    std::string out;
    std::vector<pass::PassRecord> records;
    // Independent graphs in one file, as tests have them.
    for (size_t start = 0; start <= text->size();) {
      size_t end = text->find(kSeparator, start);
      if (end == std::string::npos)
        end = text->size();
      const std::string_view part = std::string_view(*text).substr(start, end - start);
      if (!out.empty())
        out += "\n// -----\n";
      if (!one(part, pipeline, session, records, out))
        break;
      start = end + kSeparator.size();
      if (end == text->size())
        break;
    }
    if (options_.wants_stats())
      std::fputs(
          (session.json ? PassOptions::stats_json(records) : PassOptions::stats_text(records))
              .c_str(),
          stderr);
    if (session.diagnostics.has_errors())
      return session.finish();
    if (Status s = write_text(output_, out); !s)
      return session.fail(std::move(s.error()));
    return session.finish();
  }

private:
  bool one(std::string_view text, const pass::PipelineOptions &pipeline, Session &session,
           std::vector<pass::PassRecord> &records, std::string &out) {
    ir::Context ctx;
    ir::ParseOptions parse;
    parse.file = input_;
    auto graph = ir::parse(ctx, text, parse);
    if (!graph) {
      session.diagnostics.add(std::move(graph.error()));
      return false;
    }
    ir::verify(**graph, session.diagnostics);
    if (session.diagnostics.has_errors())
      return false;
    if (!pass::run_pipeline(**graph, passes_, session.diagnostics, pipeline, records))
      return false;
    ir::verify(**graph, session.diagnostics);
    out += ir::print(**graph);
    return !session.diagnostics.has_errors();
  }

  std::string input_;
  std::string output_ = "-";
  std::vector<std::string> passes_;
  PassOptions options_;
};

} // namespace

std::unique_ptr<Command> make_opt() { return std::make_unique<Opt>(); }

} // namespace chute::cli

#include "circle/optimize.h"
#include "circle/reader.h"
#include "circle/writer.h"
#include "cli/model_file.h"
#include "cli/pass_options.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/mapped_file.h"
#include "support/text_file.h"
#include "support/trace.h"

#include <cstdio>
#include <unistd.h>

namespace chute::cli {

namespace {

double seconds_since(i64 start_us) {
  return static_cast<double>(Trace::now_us() - start_us) * 1e-6;
}

class Optimize final : public Command {
public:
  std::string_view summary() const override {
    return "Make a Circle file smaller and faster without changing what it computes";
  }
  std::string_view examples() const override {
    return "  chute optimize model.circle -o small.circle\n"
           "  chute optimize model.circle -o small.circle -O2 --stats\n"
           "  chute optimize model.circle -o small.circle -p simplify-views,cse,dce\n"
           "  cat model.tflite | chute optimize - -o - -O1 > small.circle\n"
           "Levels: -O0 drops what nothing uses, -O1 adds every cheap local rewrite, -O2 also "
           "moves "
           "transposes over\n"
           "whole regions and reorders operators for less activation memory. Inputs, outputs and "
           "their names never\n"
           "change. `chute passes` says what each pass does.";
  }
  void declare(Args &args) override {
    args.positional("input", input_, "A .circle, .tflite or text IR file; - for standard input");
    args.option("-o,--output", output_, "The .circle file to write; - for standard output", true);
    args.option("-O", level_, "Level: 0, 1 (the default) or 2");
    args.option("-p,--passes", passes_, "These passes in order instead of a level's");
    options_.declare(args);
  }

  int run(Session &session) override {
    session.diagnostics.set_file(input_);
    if (!check_usage(session))
      return session.finish();
    const i64 start = Trace::now_us();
    ir::Context ctx;
    auto model = read(ctx);
    if (!model)
      return session.fail(std::move(model.error()));
    const double read_seconds = seconds_since(start);
    size_t after = 0;
    for (size_t i = 0; i <= model->more.size(); ++i) {
      ir::Graph &graph = i == 0 ? *model->graph : *model->more[i - 1];
      const bool ok = transform(graph, session);
      if (!ok || i == model->more.size())
        show_stats(session);
      if (!ok)
        return session.finish();
      after += count(graph);
    }
    const i64 write_start = Trace::now_us();
    if (Status s = write(*model); !s)
      return session.fail(std::move(s.error()));
    const double write_seconds = seconds_since(write_start);
    if (session.json || (!session.quiet && output_ != "-" && isatty(STDOUT_FILENO)))
      print(session, after, read_seconds, write_seconds, seconds_since(start));
    return session.finish();
  }

private:
  bool check_usage(Session &session) {
    const auto usage = [&](std::string code, std::string message, std::string hint) {
      Diagnostic d;
      d.kind = ErrorKind::Usage;
      d.code = std::move(code);
      d.message = std::move(message);
      d.hint = std::move(hint);
      session.diagnostics.add(std::move(d));
      return false;
    };
    if (!level_.empty() && !passes_.empty())
      return usage("cli.optimize.level", "a level and a list of passes exclude each other",
                   "give either -O or -p");
    if (passes_.empty()) {
      const std::string_view level = level_.empty() ? "1" : std::string_view(level_);
      if (level.size() != 1 || level[0] < '0' || level[0] > '2')
        return usage("cli.optimize.level", "there is no level '" + level_ + "'",
                     "the levels are -O0, -O1 and -O2");
      passes_ = circle::optimize_pipeline(level[0] - '0');
    }
    for (const std::string &name : passes_)
      if (!pass::PassRegistry::global().find(name))
        return usage("pass.unknown", "no pass is called '" + name + "'",
                     "`chute passes` lists them");
    return options_.fill(pipeline_, session.diagnostics);
  }

  Result<circle::Model> read(ir::Context &ctx) const {
    if (input_ != "-") {
      auto file = MappedFile::open(input_);
      if (!file)
        return tl::unexpected(std::move(file.error()));
      const std::shared_ptr<const MappedFile> owner = std::move(*file);
      return read_bytes(ctx, owner->text(), owner);
    }
    auto text = read_text(input_);
    if (!text)
      return tl::unexpected(std::move(text.error()));
    const auto owner = std::make_shared<const std::string>(std::move(*text));
    return read_bytes(ctx, *owner, owner);
  }

  Result<circle::Model> read_bytes(ir::Context &ctx, std::string_view bytes,
                                   std::shared_ptr<const void> owner) const {
    switch (tell_format(bytes)) {
    case FileFormat::Circle:
      return circle::read_model(ctx, std::as_bytes(std::span(bytes)), std::move(owner));
    case FileFormat::Text: return read_ir(ctx, bytes);
    case FileFormat::Pt2:
    case FileFormat::Tosa: break;
    }
    Diagnostic d;
    d.kind = ErrorKind::BadInput;
    d.code = "cli.input.format";
    d.message = "this is a torch.export archive, not a Circle file";
    d.hint = "`chute convert` makes a Circle file of it, optimized already";
    return tl::unexpected(std::move(d));
  }

  Result<circle::Model> read_ir(ir::Context &ctx, std::string_view text) const {
    ir::ParseOptions options;
    options.file = input_;
    auto graph = ir::parse(ctx, text, options);
    if (!graph)
      return tl::unexpected(std::move(graph.error()));
    Diagnostics findings;
    ir::verify(**graph, findings);
    for (const Diagnostic &d : findings.all())
      if (d.severity == Severity::Error)
        return tl::unexpected(d);
    circle::Model model;
    model.graph = std::move(*graph);
    model.description = circle::WriteOptions().description;
    model.signature_key = circle::WriteOptions().signature_key;
    return model;
  }

  static size_t count(const ir::Graph &graph) { return circle::count_operators(graph); }

  void show_stats(const Session &session) const {
    if (options_.wants_stats())
      std::fputs(
          (session.json ? PassOptions::stats_json(records_) : PassOptions::stats_text(records_))
              .c_str(),
          stderr);
  }

  bool transform(ir::Graph &graph, Session &session) {
    before_ += count(graph);
    const bool ok = pass::run_pipeline(graph, passes_, session.diagnostics, pipeline_, records_);
    if (!ok)
      return false;
    const size_t errors = session.diagnostics.error_count();
    ir::verify(graph, session.diagnostics);
    return session.diagnostics.error_count() == errors;
  }

  Status write(const circle::Model &model) {
    if (model.origin) {
      // At -O0 all that nothing made dead comes back as it was.
      circle::ModelWriteOptions as_read;
      as_read.compact = level_ != "0";
      if (output_ != "-")
        return circle::write_model(model, output_, as_read, &written_);
      auto bytes = circle::write_model_bytes(model, as_read, &written_);
      if (!bytes)
        return tl::unexpected(std::move(bytes.error()));
      return write_text("-", {reinterpret_cast<const char *>(bytes->data()), bytes->size()});
    }
    circle::WriteOptions options;
    options.description = model.description;
    options.signature_key = model.signature_key;
    options.subgraph_name = model.subgraph_name;
    options.metadata = model.metadata;
    if (output_ != "-")
      return circle::write(*model.graph, output_, options, &written_);
    auto bytes = circle::write_bytes(*model.graph, options, &written_);
    if (!bytes)
      return tl::unexpected(std::move(bytes.error()));
    return write_text("-", {reinterpret_cast<const char *>(bytes->data()), bytes->size()});
  }

  void print(const Session &session, size_t after, double read, double write, double total) const {
    if (session.json)
      std::fprintf(output_ == "-" ? stderr : stdout,
                   "{\"output\":%s,\"operators_before\":%zu,\"operators_after\":%zu,"
                   "\"bytes\":%llu,\"read_seconds\":%.6f,\"pass_seconds\":%.6f,"
                   "\"write_seconds\":%.6f,\"seconds\":%.6f}\n",
                   json_quote(output_).c_str(), before_, after,
                   static_cast<unsigned long long>(written_.bytes), read, total - read - write,
                   write, total);
    else
      std::printf("%s: %zu operators to %zu, %llu bytes, %.3f s\n", output_.c_str(), before_, after,
                  static_cast<unsigned long long>(written_.bytes), total);
  }

  std::string input_;
  std::string output_;
  std::string level_;
  std::vector<std::string> passes_;
  PassOptions options_;
  pass::PipelineOptions pipeline_;
  std::vector<pass::PassRecord> records_;
  circle::WriteStats written_;
  size_t before_ = 0;
};

} // namespace

std::unique_ptr<Command> make_optimize() { return std::make_unique<Optimize>(); }

} // namespace chute::cli

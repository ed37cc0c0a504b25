#include "circle/verify.h"

#include "cli/command.h"
#include "cli/model_file.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/text_file.h"
#include "tosa/verify.h"

#include <cstdio>

namespace chute::cli {

namespace {

class Verify final : public Command {
public:
  std::string_view summary() const override {
    return "Check a file's structure and every operator's contract";
  }
  std::string_view examples() const override {
    return "  chute verify model.circle\n"
           "  chute verify model.circle --warnings-as-errors --json\n"
           "  chute verify model.tosa --target tosa-1.0+int\n"
           "  cat model.circle | chute verify -\n"
           "Findings go to standard error; the exit code is 0 when there is no error, 4 for a file "
           "that\n"
           "is damaged or of an unknown format, 1 for one that is readable but wrong.";
  }
  void declare(Args &args) override {
    args.positional("file", file_,
                    "A .circle, .tflite, .tosa, .pt2 or text IR file; - for standard input");
    args.option("--target", target_,
                "What a TOSA file has to keep to, e.g. tosa-1.0+fp+bf16+8k (default: any profile)");
    args.flag("--warnings-as-errors", strict_, "Fail on warnings, too");
    args.flag("--stats", stats_,
              "Say what the check of a Circle file looked at, on standard error");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(file_);
    Result<std::string> from_input; // keeps the bytes of standard input
    ir::Context ctx;
    if (file_ == "-") {
      from_input = read_text(file_);
      if (!from_input)
        return session.fail(std::move(from_input.error()));
      check_bytes(ctx, *from_input, session);
    } else {
      auto file = MappedFile::open(file_);
      if (!file)
        return session.fail(std::move(file.error()));
      check_bytes(ctx, (*file)->text(), session);
    }
    return conclude(session);
  }

private:
  void check_bytes(ir::Context &ctx, std::string_view bytes, Session &session) {
    if (tell_format(bytes) == FileFormat::Circle) {
      circle::VerifyOptions options;
      circle::VerifyWork work;
      options.work = stats_ ? &work : nullptr;
      circle::verify(std::as_bytes(std::span(bytes)), session.diagnostics, options);
      if (stats_)
        std::fprintf(stderr,
                     session.json
                         ? "{\"tensors\":%llu,\"operators\":%llu,\"operands\":%llu,"
                           "\"contracts\":%llu}\n"
                         : "%llu tensors, %llu operators, %llu operands, %llu contracts computed\n",
                     static_cast<unsigned long long>(work.tensors),
                     static_cast<unsigned long long>(work.operators),
                     static_cast<unsigned long long>(work.operands),
                     static_cast<unsigned long long>(work.contracts));
      return;
    }
    if (tell_format(bytes) == FileFormat::Tosa) {
      check_tosa(ctx, std::as_bytes(std::span(bytes)), session);
      return;
    }
    if (tell_format(bytes) == FileFormat::Text) {
      ir::ParseOptions options;
      options.file = file_;
      auto graph = ir::parse(ctx, bytes, options);
      if (!graph)
        session.diagnostics.add(std::move(graph.error()));
      else
        ir::verify(**graph, session.diagnostics);
      return;
    }
    if (file_ == "-") {
      Diagnostic d;
      d.kind = ErrorKind::Usage;
      d.code = "cli.stdin";
      d.message =
          "a .pt2 can not be read from standard input: its weights are mapped from the file";
      d.hint = "give the path of the archive";
      session.diagnostics.add(std::move(d));
      return;
    }
    auto model = load_model(ctx, file_, session.threads, session.diagnostics);
    if (!model)
      session.diagnostics.add(std::move(model.error()));
    else
      ir::verify(*model->graph, session.diagnostics);
  }

  void check_tosa(ir::Context &ctx, std::span<const std::byte> bytes, Session &session) {
    auto target = tosa::parse_target(target_.empty() ? "tosa-1.1" : target_);
    if (!target) {
      session.diagnostics.add(std::move(target.error()));
      return;
    }
    // The caller keeps the bytes for as long as the graph is looked at.
    tosa::verify(ctx, bytes, *target, session.diagnostics);
  }

  int conclude(Session &session) {
    size_t warnings = 0;
    for (const Diagnostic &d : session.diagnostics.all())
      warnings += d.severity == Severity::Warning;
    const size_t errors = session.diagnostics.error_count();
    if (!session.json && !session.quiet)
      std::printf("%s: %zu errors, %zu warnings\n", file_.c_str(), errors, warnings);
    const int code = session.finish();
    if (code == 0 && strict_ && warnings)
      return static_cast<int>(ErrorKind::Failure);
    return code;
  }

  std::string file_;
  std::string target_;
  bool strict_ = false;
  bool stats_ = false;
};

} // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<Verify>(); }

} // namespace chute::cli

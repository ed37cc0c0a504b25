#include "convert/convert.h"

#include "cli/pass_options.h"
#include "cli/progress.h"
#include "quant/ledger.h"
#include "support/output_file.h"

#include <cstdio>
#include <unistd.h>

namespace chute::cli {

namespace {

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

class Convert final : public Command {
public:
  std::string_view summary() const override {
    return "Convert a torch.export archive (.pt2) to Circle (.circle) or TOSA (.tosa)";
  }
  std::string_view examples() const override {
    return "  chute convert model.pt2 -o model.circle\n"
           "  chute convert model.pt2 -o model.tosa --profile fp\n"
           "  chute convert model.pt2 -o model.circle --quant-report scales.json\n"
           "  chute convert model.pt2 -o model.pte\n"
           "  chute convert model.pt2 -o model.circle --verify-each --stats\n"
           "  chute convert model.pt2 -o model.circle --print-after legalize-circle";
  }
  void declare(Args &args) override {
    args.positional("input", input_, "The .pt2 archive");
    args.option("-o,--output", output_,
                "The .circle, .tosa, .mlir (TOSA as text) or .pte (ExecuTorch) file to write",
                true);
    args.option("--model", model_, "Which of an archive's models to convert");
    args.option("--profile", profile_,
                "TOSA profile: fp, int or int+fp (default: what the program is)");
    args.option(
        "--target", target_,
        "Accelerator that Vela compiles a .tosa or .pte for: ethos-u55-128, ethos-u85-256, …");
    args.choice("--io-layout", io_layout_, {"nchw", "nhwc"},
                "Order of rank-4 inputs and outputs of a TOSA file (default nchw, PyTorch's)");
    args.option("--sizes", sizes_,
                "Numbers for symbolic sizes in a TOSA file, e.g. s77=2,s0=8 (default: those that "
                "the export's example inputs had)");
    args.option("--state", state_,
                "What becomes of buffers that the program writes: variable (variable tensors, the "
                "default of a .circle), io (inputs and outputs), drop (the default of others)");
    args.option("--report", report_, "Write the file's interface to this JSON file");
    args.option("--quant-report", quant_report_,
                "Write what became of every scale and zero point: JSON, or text for - and .txt");
    options_.declare(args);
  }

  int run(Session &session) override {
    session.diagnostics.set_file(input_);
    const bool mlir = ends_with(output_, ".mlir"), program = ends_with(output_, ".pte");
    const bool tosa = mlir || program || ends_with(output_, ".tosa");
    if (!tosa && !ends_with(output_, ".circle"))
      return usage(session, "cli.output.format",
                   "the output's extension names the format: .circle, .tosa, .mlir or .pte",
                   output_, "name the output model.circle, model.tosa, model.mlir or model.pte");
    if (!profile_.empty() && !tosa)
      return usage(session, "cli.output.profile", "a profile belongs to TOSA", profile_,
                   "name the output model.tosa");
    if (profile_ != "" && profile_ != "fp" && profile_ != "int" && profile_ != "int+fp")
      return usage(session, "cli.profile", "is no TOSA profile", profile_,
                   "one of fp, int, int+fp");
    if (!target_.empty() && (!tosa || mlir))
      return usage(session, "cli.output.target", "an accelerator belongs to .tosa and .pte",
                   target_, "name the output model.pte");
    convert::ConvertOptions options;
    options.accelerator = target_;
    options.threads = static_cast<unsigned>(session.threads);
    options.leave_memory = true;
    options.model = model_;
    if (!options_.fill(options.pipeline, session.diagnostics))
      return session.finish();
    if (io_layout_ == "nhwc" && !tosa)
      return usage(session, "cli.output.layout", "the layout of inputs and outputs belongs to TOSA",
                   io_layout_, "name the output model.tosa");
    if (!io_layout_.empty())
      options.pipeline.settings["io_layout"] = io_layout_;
    if (!sizes_.empty() && !tosa)
      return usage(session, "cli.output.sizes", "a Circle file keeps symbolic sizes", sizes_,
                   "name the output model.tosa");
    if (!sizes_.empty())
      options.pipeline.settings["sizes"] = sizes_;
    if (!profile_.empty())
      options.pipeline.settings["tosa_profile"] = profile_;
    quant::Ledger ledger;
    if (!quant_report_.empty())
      options.ledger = &ledger;
    if (state_ != "" && state_ != "drop" && state_ != "io" && state_ != "variable")
      return usage(session, "cli.state", "is no way to keep state", state_,
                   "one of drop, io, variable");
    if (state_ == "variable" && tosa)
      return usage(session, "cli.state", "belongs to Circle", state_, "one of drop, io");
    options.pipeline.settings["state"] = !state_.empty() ? state_ : tosa ? "drop" : "variable";
    convert::ConvertReport report;
    bool ok = false;
    {
      Progress progress(session.quiet);
      options.on_phase = [&](std::string_view name) { progress.phase(name); };
      ok = convert::convert_pt2(input_, output_,
                                mlir      ? convert::Target::Mlir
                                : program ? convert::Target::ExecuTorch
                                : tosa    ? convert::Target::Tosa
                                          : convert::Target::Circle,
                                options, session.diagnostics, report);
    }
    if (options_.wants_stats())
      std::fputs((session.json ? PassOptions::stats_json(report.passes)
                               : PassOptions::stats_text(report.passes))
                     .c_str(),
                 stderr);
    if (ok && !report_.empty())
      write(session, report_, convert::report_json(report));
    if (ok && quant_report_ == "-")
      std::fputs(ledger.to_text().c_str(), stdout);
    else if (ok && !quant_report_.empty())
      write(session, quant_report_,
            ends_with(quant_report_, ".txt") ? ledger.to_text() : ledger.to_json());
    // A summary for a person at a terminal; scripts ask for it with --json.
    if (ok && (session.json || (!session.quiet && isatty(STDOUT_FILENO))))
      print(session, report);
    return session.finish();
  }

private:
  static int usage(Session &session, std::string code, std::string message, std::string object,
                   std::string hint) {
    Diagnostic d;
    d.kind = ErrorKind::Usage;
    d.code = std::move(code);
    d.message = std::move(message);
    d.object = std::move(object);
    d.hint = std::move(hint);
    return session.fail(std::move(d));
  }

  static void write(Session &session, const std::string &path, const std::string &text) {
    auto file = OutputFile::create(path);
    Status s = file ? file->write(text) : Status(tl::unexpected(std::move(file.error())));
    if (s)
      s = file->commit();
    if (!s)
      session.diagnostics.add(std::move(s.error()));
  }

  void print(const Session &session, const convert::ConvertReport &r) const {
    const double total = r.read_seconds + r.pass_seconds + r.write_seconds;
    if (session.json)
      std::printf("{\"output\":%s,\"nodes\":%llu,\"operators\":%llu,\"bytes\":%llu,"
                  "\"seconds\":%.6f}\n",
                  json_quote(output_).c_str(), static_cast<unsigned long long>(r.nodes_read),
                  static_cast<unsigned long long>(r.ops_written),
                  static_cast<unsigned long long>(r.bytes_written), total);
    else
      std::printf("%s: %llu nodes to %llu operators, %llu bytes, %.3f s\n", output_.c_str(),
                  static_cast<unsigned long long>(r.nodes_read),
                  static_cast<unsigned long long>(r.ops_written),
                  static_cast<unsigned long long>(r.bytes_written), total);
  }

  std::string input_;
  std::string output_;
  std::string model_;
  std::string profile_, target_, io_layout_, sizes_;
  std::string report_;
  std::string quant_report_;
  std::string state_;
  PassOptions options_;
};

} // namespace

std::unique_ptr<Command> make_convert() { return std::make_unique<Convert>(); }

} // namespace chute::cli

#include "convert/explain.h"

#include "cli/command.h"
#include "cli/pass_options.h"
#include "ethosu/vela.h"

#include <cstdio>

namespace chute::cli {

namespace {

class Explain final : public Command {
public:
  std::string_view summary() const override {
    return "Say what stands between a .pt2 and its conversion, all of it at once, and what is in "
           "it";
  }
  std::string_view examples() const override {
    return "  chute explain model.pt2\n"
           "  chute explain model.pt2 --target tosa-1.0+int\n"
           "  chute explain model.pt2 --json > report.json || echo does not convert";
  }
  void declare(Args &args) override {
    args.positional("input", input_, "The .pt2 archive");
    args.option(
        "--target", target_,
        "circle (default), tosa, a TOSA target (tosa-1.0+int, tosa-1.0+fp+bf16), or an Ethos-U "
        "(ethos-u55-128): what each node becomes and whether the target takes it");
    args.option("--model", model_, "Which of an archive's models to look at");
    options_.declare(args);
  }

  int run(Session &session) override {
    session.diagnostics.set_file(input_);
    convert::ConvertOptions options;
    options.threads = static_cast<unsigned>(session.threads);
    options.model = model_;
    if (!options_.fill(options.pipeline, session.diagnostics))
      return session.finish();
    const bool accelerator = target_.starts_with("ethos-u"), tosa = target_.starts_with("tosa");
    if (target_ != "circle" && !accelerator && !tosa) {
      Diagnostic d;
      d.kind = ErrorKind::Usage;
      d.code = "cli.explain.target";
      d.object = target_;
      d.message = "is no target";
      d.hint = "circle, tosa, tosa-1.0+int, tosa-1.0+fp, ethos-u55-128 and the like";
      return session.fail(std::move(d));
    }
    if (accelerator) {
      if (auto known = ethosu::parse_accelerator(target_); !known)
        return session.fail(std::move(known.error()));
    }
    if (target_ != "tosa" && (tosa || accelerator))
      options.requirements = target_;
    const auto target = target_ == "circle" ? convert::Target::Circle : convert::Target::Tosa;
    convert::Explanation e;
    if (!convert::explain_pt2(input_, target, options, session.diagnostics, e))
      return session.finish();
    const std::string text = session.json ? convert::explanation_json(input_, target, e)
                                          : convert::explanation_text(input_, target, e);
    std::fputs(text.c_str(), stdout);
    if (!e.problems.empty())
      return static_cast<int>(e.problems.front().kind);
    return session.finish();
  }

private:
  std::string input_;
  std::string target_ = "circle";
  std::string model_;
  PassOptions options_;
};

} // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

} // namespace chute::cli

#include "convert/explain.h"

#include "cli/command.h"
#include "cli/pass_options.h"

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
           "  chute explain model.pt2 --target tosa\n"
           "  chute explain model.pt2 --json > report.json || echo does not convert";
  }
  void declare(Args &args) override {
    args.positional("input", input_, "The .pt2 archive");
    args.choice("--target", target_, {"circle", "tosa"}, "What to convert to (default circle)");
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
    const auto target = target_ == "tosa" ? convert::Target::Tosa : convert::Target::Circle;
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

#include "cli/command.h"
#include "pass/pass.h"

#include <cstdio>

namespace chute::cli {

namespace {

class Passes final : public Command {
public:
  std::string_view summary() const override { return "List every pass with its one-line summary"; }
  std::string_view examples() const override { return "  chute passes\n  chute passes --json"; }
  void declare(Args &) override {}

  int run(Session &session) override {
    const auto &passes = pass::PassRegistry::global().all();
    if (session.json) {
      std::string out = "[";
      for (const pass::PassInfo &p : passes)
        out += (out.size() > 1 ? ",\n " : "\n ") + ("{\"name\":" + json_quote(p.name)) +
               ",\"dialect\":" + json_quote(p.dialect) + ",\"summary\":" + json_quote(p.summary) +
               "}";
      std::printf("%s\n]\n", out.c_str());
      return 0;
    }
    size_t width = 0;
    for (const pass::PassInfo &p : passes)
      width = std::max(width, p.name.size());
    for (const pass::PassInfo &p : passes)
      std::printf("%-*.*s  %-6.*s  %.*s\n", static_cast<int>(width),
                  static_cast<int>(p.name.size()), p.name.data(),
                  static_cast<int>(p.dialect.size()), p.dialect.data(),
                  static_cast<int>(p.summary.size()), p.summary.data());
    return 0;
  }
};

} // namespace

std::unique_ptr<Command> make_passes() { return std::make_unique<Passes>(); }

} // namespace chute::cli

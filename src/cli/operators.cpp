#include "aten/passes/passes.h"
#include "circle/legalize/legalize.h"
#include "cli/command.h"
#include "ir/graph.h"
#include "tosa/legalize/legalize.h"

#include <cstdio>

namespace chute::cli {

namespace {

class Operators final : public Command {
public:
  std::string_view summary() const override {
    return "List every ATen operator with what becomes of it";
  }
  std::string_view examples() const override {
    return "  chute operators | grep softmax\n  chute operators --json";
  }
  void declare(Args &) override {}

  int run(Session &session) override {
    std::string out;
    for (const aten::OperatorFacts &f : aten::operator_facts()) {
      const std::string name(ir::Registry::global().def(f.opcode).name);
      const bool circle = !circle::legalize_patterns().for_opcode(f.opcode).empty();
      const bool tosa = !tosa::legalize_patterns().for_opcode(f.opcode).empty();
      if (session.json) {
        out += (out.empty() ? "[\n {\"name\":" : ",\n {\"name\":") + json_quote(name) +
               ",\"fate\":" + json_quote(f.fate) + ",\"detail\":" + json_quote(f.detail) +
               ",\"limits\":" + json_quote(f.limits) +
               ",\"circle\":" + (circle ? "true" : "false") +
               ",\"tosa\":" + (tosa ? "true" : "false") + "}";
        continue;
      }
      out += name + std::string(name.size() < 52 ? 52 - name.size() : 1, ' ');
      out += f.fate;
      if (!f.detail.empty())
        out += " " + f.detail;
      if (!f.limits.empty())
        out += " (" + std::string(f.limits) + ")";
      out += '\n';
    }
    std::fputs((session.json ? out + "\n]\n" : out).c_str(), stdout);
    return 0;
  }
};

} // namespace

std::unique_ptr<Command> make_operators() { return std::make_unique<Operators>(); }

} // namespace chute::cli

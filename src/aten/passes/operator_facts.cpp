#include "aten/ops.h"
#include "aten/passes/passes.h"

#include <algorithm>
#include <bitset>
#include <string>
#include <unordered_set>

// What becomes of each operator: read from the tables and from the rules themselves, so that it
// can not differ from what a conversion does.
namespace chute::aten {

namespace {

struct Limit {
  ir::OpCode opcode;
  std::string_view text;
};
constexpr Limit kLimits[] = {
#define LIMIT(name, text) {op::name, text},
#include "aten/passes/limits.def"
#undef LIMIT
};

std::bitset<ir::kMaxOpCode> core_codes() {
  std::bitset<ir::kMaxOpCode> out;
#define CORE(name) out.set(ir::index(op::name));
#include "aten/passes/core_ops.def"
#undef CORE
  return out;
}

/// "aten.add_.Tensor" to "aten.add.Tensor".
std::string functional_name(std::string_view name) {
  std::string out(name);
  const size_t dot = out.rfind('.');
  if (dot > 0 && out[dot - 1] == '_')
    out.erase(dot - 1, 1);
  return out;
}

} // namespace

std::vector<OperatorFacts> operator_facts() {
  const auto core = core_codes();
  const pass::PatternSet &rules = decompose_rules();
  std::vector<OperatorFacts> out;
  for (const ir::OpDef *def : ir::Registry::global().all()) {
    const u16 code = ir::index(def->opcode);
    if (code < ir::kAtenBase || code >= ir::kCircleBase)
      continue;
    OperatorFacts f{def->opcode, "none", {}, {}};
    const auto with_rule = rules.for_opcode(def->opcode);
    if (core[code])
      f.fate = "core";
    else if (def->has(ir::trait::kCheck) || def->has(ir::trait::kNoOp))
      f.fate = "dropped";
    else if (def->has(ir::trait::kInPlace)) {
      f.fate = "in place";
      f.detail = functional_name(def->name);
    } else if (def->has(ir::trait::kQuantization))
      f.fate = "quantization";
    else if (def->has(ir::trait::kRegions))
      f.fate = "control flow";
    for (const auto at : with_rule) {
      const std::string_view name = rules.patterns()[at].name;
      if (f.fate != "none" && f.fate != "rule")
        break;
      if (name == "wrap-dims") // leaves the operator where it was
        continue;
      f.fate = "rule";
      f.detail = name;
    }
    const auto *limit = std::find_if(std::begin(kLimits), std::end(kLimits),
                                     [&](const Limit &l) { return l.opcode == def->opcode; });
    if (limit != std::end(kLimits))
      f.limits = limit->text;
    out.push_back(std::move(f));
  }
  // An in-place form gets as far as its functional form.
  std::unordered_set<std::string_view> lost;
  for (const OperatorFacts &f : out)
    if (f.fate == "none")
      lost.insert(ir::Registry::global().def(f.opcode).name);
  for (OperatorFacts &f : out)
    if (f.fate == "in place" && lost.contains(f.detail))
      f.fate = "none";
  std::sort(out.begin(), out.end(), [](const OperatorFacts &a, const OperatorFacts &b) {
    return ir::Registry::global().def(a.opcode).name < ir::Registry::global().def(b.opcode).name;
  });
  return out;
}

} // namespace chute::aten

// quantize-interface: inputs that are only quantized become integers, and so do outputs that are
// dequantized integers.
//
//   input %x: f32, quantize(%x)   → input %x: i16 with the parameters
//   return dequantize(%q)         → return %q
//
// Only with one scale per tensor: a caller of a tensor with one per channel keeps reals. One note
// names the inputs and outputs concerned with their parameters: a caller has to store and
// read real numbers as scale * (stored - zero point). Setting quant_io: `integer` (default), as the
// format's quantizers leave a file, or `float`, which keeps the program's types.
#include "circle/passes.h"
#include "circle/quantize/pipeline.h"
#include "circle/quantize/storage.h"
#include "quant/ledger.h"
#include "quant/params.h"

#include <cstdio>

namespace chute::circle {

namespace {

using ir::Op;
using ir::Value;

std::string describe(ir::Type t) {
  const ir::Quantization &q = *t.quant();
  if (quant::is_mx(t))
    return std::string(ir::element_type_name(t.element())) + " in blocks along dimension " +
           std::to_string(q.axis);
  char text[96];
  std::snprintf(text, sizeof text, "%.9g * (stored - %lld)", static_cast<double>(q.scales[0]),
                static_cast<long long>(q.zero_points[0]));
  return std::string(ir::element_type_name(t.element())) + ", " + text;
}

/// What callers can store: whole bytes with one scale, or blocks.
bool is_portable(ir::Type t) {
  return quant::is_mx(t) || (quant::is_per_tensor(t) && ir::element_bits(t.element()) >= 8);
}

void note(pass::PassContext &ctx, const std::string &object, ir::Type t) {
  Diagnostic d;
  d.severity = Severity::Note;
  d.kind = ErrorKind::None;
  d.code = "quant.interface";
  d.object = object;
  d.message = "is stored as " + describe(t);
  d.hint = "--set quant_io=float keeps it f32";
  ctx.diagnostics.add(std::move(d));
}

} // namespace

const std::vector<std::string> &quantize_pipeline() {
  static const std::vector<std::string> passes{"hoist-quantize", "fold-quantize",
                                               "quantize-interface"};
  return passes;
}

void quantize_interface(pass::PassContext &ctx) {
  if (const auto it = ctx.settings.find("quant_io"); it != ctx.settings.end()) {
    if (it->second == "float")
      return;
    if (it->second != "integer") {
      Diagnostic d;
      d.kind = ErrorKind::Usage;
      d.code = "pass.setting";
      d.message = "quant_io is '" + it->second + "'";
      d.hint = "give `integer` or `float`";
      return ctx.diagnostics.add(std::move(d));
    }
  }
  ir::Graph &graph = ctx.graph;
  for (const ir::InputInfo &in : graph.inputs()) {
    Value *x = in.value;
    const ir::Type t = x && is_real(x) ? common_quantization(x) : ir::Type();
    if (!t || !is_portable(t))
      continue;
    graph.set_type(x, t);
    for (ir::Use &u : x->uses()) {
      Op *q = u.owner();
      if (quant::Ledger *ledger = quant::Ledger::active())
        ledger->moved(q->result(), x);
      graph.replace_all_uses(q->result(), x);
      graph.erase(q);
      ++ctx.counters.rewrites;
    }
    note(ctx, "input " + in.name, t);
  }
  Op *ret = graph.return_op();
  for (const ir::OutputInfo &out : graph.outputs()) {
    if (out.operand < 0 || !ret)
      continue;
    const auto i = static_cast<u32>(out.operand);
    if (Value *q = stored(ret->operand(i)); q && is_portable(q->type())) {
      graph.set_operand(ret, i, q);
      ++ctx.counters.rewrites;
      note(ctx, "output " + out.name, q->type());
    }
  }
}

} // namespace chute::circle

// tosa-quantize-interface: inputs and outputs are integers where the program quantizes them.
//
//   %q = quantize(%x: f32)   ... %q ...   ->   %x: i8 with scale and zero point   ... %x ...
//
// An input that is quantized in several ways, or used as a real as well, stays real. Then every
// quantize or dequantize operator that is left stands beside an operator on reals that has no
// integer form. With the profile int+fp it becomes arithmetic (CAST, MUL, ADD, CLAMP); otherwise it
// is refused by name. Runs last: rewrites of layouts need not keep parameters on types.
//
// Settings: tosa_profile, what `--profile` says; quant_io: `float` leaves inputs and outputs as the
// program has them, for callers that hand on its tensors (ExecuTorch's delegates).
#include "aten/quantization.h"
#include "quant/params.h"
#include "tosa/passes.h"
#include "tosa/quant/fold.h"

#include <algorithm>

namespace chute::tosa {

namespace {

void store_interface(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  ir::Context &ir = graph.context();
  const auto on = [&](const Value *v, const Grid &g) {
    const auto *q = quant::per_tensor(ir, static_cast<float>(g.scale), g.zero_point);
    return quant::stored_type(ir, v->type(), g.element, q);
  };
  const auto typed = [&](Value *v, const Grid &g) { graph.set_type(v, on(v, g)); };
  for (const ir::InputInfo &in : graph.inputs()) {
    Value *v = in.value;
    if (!v || !v->type().is_tensor() || !is_float(v) || !v->has_uses())
      continue;
    std::optional<Grid> grid;
    bool alike = true;
    for (const ir::Use &u : v->uses()) {
      const auto g = grid_of(*u.owner());
      alike = alike && g &&
              (!grid || (grid->scale == g->scale && grid->zero_point == g->zero_point &&
                         grid->element == g->element));
      if (g && !grid)
        grid = g;
    }
    if (!alike || !grid)
      continue;
    std::vector<ir::Op *> quantizers;
    for (const ir::Use &u : v->uses())
      quantizers.push_back(u.owner());
    typed(v, *grid);
    for (ir::Op *q : quantizers) {
      graph.replace_all_uses(q->result(), v);
      graph.erase(q);
    }
  }
  if (ir::Op *ret = graph.return_op())
    for (u32 i = 0; i < ret->num_operands(); ++i)
      if (const auto s = stored_of(ret->operand(i))) {
        const Grid g{s->scale, s->zero_point, 0, 0, s->element()};
        Value *v = s->value;
        if (!v->type().quant())
          typed(v, g);
        else if (const ir::Type own = on(v, g); own != v->type())
          // The same numbers stand for others elsewhere: x + x on twice the steps is x.
          v = ir::Builder(graph, graph.body(), ret)
                  .create_typed(op::IDENTITY, std::span(&v, 1), {}, std::span(&own, 1))
                  ->result();
        graph.set_operand(ret, i, v);
      }
}

/// real = (stored - zero_point) * scale, one scale or one per index of an axis.
Value *to_reals(Emit &e) {
  const auto form = aten::affine_form(e.op);
  if (!form)
    return nullptr;
  Value *x = e.arg(0);
  const int rank = x->type().rank();
  Dims dims(static_cast<size_t>(rank), 1);
  if (form->axis >= 0)
    dims[static_cast<size_t>(form->axis)] = static_cast<i64>(form->scales.size());
  const std::vector<double> scales(form->scales.begin(), form->scales.end()),
      zeros(form->zero_points.begin(), form->zero_points.end());
  Value *real = e.cast(x, ElementType::F32);
  if (std::ranges::any_of(zeros, [](double z) { return z != 0; }))
    real = e.sub(real, e.constant(ElementType::F32, dims, zeros));
  return e.mul(real, e.constant(ElementType::F32, dims, scales));
}

/// CAST rounds to the nearest integer, ties to even.
Value *to_stored(Emit &e) {
  const auto form = aten::affine_form(e.op);
  if (!form || form->axis >= 0 || form->scales.size() != 1)
    return nullptr;
  Value *x = e.mul(e.arg(0), 1.0 / static_cast<double>(form->scales[0]));
  const auto zero = static_cast<double>(form->zero_points[0]);
  // Bounds are whole numbers: clamping first rounds to the same.
  x = e.clamp(x, static_cast<double>(form->min) - zero, static_cast<double>(form->max) - zero);
  Value *wide = e.cast(x, ElementType::I32);
  if (zero != 0)
    wide = e.add(wide, zero);
  return e.cast(wide, e.element());
}

const pass::PatternSet &real_patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add({"dequantize-in-reals", dequantize_opcodes(), lower<to_reals>});
    s.add({"quantize-in-reals", quantize_opcodes(), lower<to_stored>});
    return s;
  }();
  return set;
}

} // namespace

void quantize_interface(pass::PassContext &ctx) {
  if (!is_quantized(ctx.graph)) // legalization has refused all else
    return;
  const auto types = ctx.settings.find("quant_io");
  if (types == ctx.settings.end() || types->second != "float")
    store_interface(ctx);
  // Without patterns: dequantize operators that nothing reads go.
  const auto profile = ctx.settings.find("tosa_profile");
  const bool reals = profile != ctx.settings.end() && profile->second == "int+fp";
  LegalizeState state;
  ctx.run(reals ? real_patterns() : pass::PatternSet(), &state);
  pass::report_refusals(ctx.graph, state, is_tosa, "TOSA", "tosa.unsupported", ctx.diagnostics);
}

} // namespace chute::tosa

// tosa-fold-quantize: operators between dequantize and quantize work on stored integers.
//
//   %a = dequantize(%x)   %b = SIGMOID(%a)   %y = quantize(%b)   ->   %y = TABLE(%x)
//
// Legalization leaves quantize and dequantize operators where they are. The rules of this folder
// (movement, table, sums, products) then replace each operator between them by one on integers:
// RESCALE changes grids, TABLE holds functions of one tensor, accumulators have 32 or 48 bits. At
// last, inputs and outputs of the program become integers where the program quantizes them (their
// types carry scale and zero point), and what is still real is refused by name.
#include "tosa/quant/fold.h"

#include "aten/quantization.h"
#include "quant/params.h"
#include "tosa/passes.h"

namespace chute::tosa {

namespace {

using ir::Quantization;

/// What fake-quantize is stored as. TOSA computes with signed integers only, so 0 .. 255 become
/// -128 .. 127.
struct Storage {
  ElementType element = ElementType::None;
  i64 shift = 0; ///< added to bounds and zero points
};
std::optional<Storage> storage_of(const aten::AffineForm &form) {
  const auto element = quant::storage_for({form.min, form.max});
  if (!element)
    return std::nullopt;
  switch (*element) {
  case ElementType::U8: return Storage{ElementType::I8, -128};
  case ElementType::U4:
  case ElementType::I4: return Storage{ElementType::I8, 0};
  case ElementType::I8:
  case ElementType::I16:
  case ElementType::I32: return Storage{*element, 0};
  default: return std::nullopt;
  }
}

/// Whether something reads which elements were within the range.
bool mask_is_read(const ir::Op &op) { return op.num_results() > 1 && op.result(1)->has_uses(); }

/// The second result of the forms that have one, the mask, must be unread.
void replace_value(ir::Op &op, pass::Rewriter &rw, Value *v) {
  Value *const values[] = {v, nullptr};
  rw.replace(op, std::span(values, op.num_results()));
}

/// fake-quantize with one scale: quantize, then dequantize.
bool split(ir::Op &op, pass::Rewriter &rw) {
  if (mask_is_read(op))
    return false;
  const auto form = aten::affine_form(op);
  if (!form || form->step != aten::AffineForm::Step::Both || form->scales.size() != 1 ||
      form->axis >= 0)
    return false;
  const auto storage = storage_of(*form);
  if (!storage)
    return false;
  Emit e(op, rw);
  const std::initializer_list<NamedAttr> attrs{
      {"scale", of(static_cast<double>(form->scales[0]))},
      {"zero_point", of(form->zero_points[0] + storage->shift)},
      {"quant_min", of(form->min + storage->shift)},
      {"quant_max", of(form->max + storage->shift)},
      {"dtype", of(storage->element)}};
  Value *x = op.operand(0);
  const ir::Type stored = e.context().tensor_type(storage->element, x->type().shape());
  Value *q = e.typed(aten::op::qd_quantize_per_tensor, {x}, attrs, stored);
  replace_value(op, rw,
                e.typed(aten::op::qd_dequantize_per_tensor, {q}, attrs, op.result()->type()));
  return true;
}

/// fake-quantize of constant weights with a scale per channel: stored weights, dequantized.
bool split_channels(ir::Op &op, pass::Rewriter &rw) {
  if (mask_is_read(op))
    return false;
  const auto form = aten::affine_form(op);
  const ir::Constant *c = constant_of(op.operand(0));
  if (!form || form->step != aten::AffineForm::Step::Both || form->axis < 0 || !c || !c->has_data)
    return false;
  const auto storage = storage_of(*form);
  if (!storage)
    return false;
  Emit e(op, rw);
  std::vector<double> scales(form->scales.begin(), form->scales.end());
  std::vector<i64> zeros(form->zero_points.begin(), form->zero_points.end());
  for (i64 &z : zeros)
    z += storage->shift;
  Quantization q;
  q.kind = ir::QuantKind::PerChannel;
  q.axis = form->axis;
  const std::vector<float> narrow(form->scales.begin(), form->scales.end());
  q.scales = narrow;
  q.zero_points = zeros;
  const ir::Constant *stored = quant::quantize_constant(
      e.graph(), *c,
      quant::stored_type(e.context(), op.operand(0)->type(), storage->element,
                         e.context().quantization(q)),
      quant::Range{form->min + storage->shift, form->max + storage->shift});
  if (!stored)
    return false;
  Value *weights = e.constant(stored);
  rw.graph().set_type(weights,
                      e.context().tensor_type(storage->element, op.operand(0)->type().shape()));
  const i64 dims[] = {static_cast<i64>(scales.size())};
  Value *real = e.typed(aten::op::qd_dequantize_per_channel,
                        {weights, e.constant(ElementType::F32, dims, scales),
                         e.constant_ints(ElementType::I32, dims, zeros)},
                        {{"axis", of(static_cast<i64>(form->axis))},
                         {"quant_min", of(form->min + storage->shift)},
                         {"quant_max", of(form->max + storage->shift)},
                         {"dtype", of(storage->element)}},
                        op.result()->type());
  replace_value(op, rw, real);
  return true;
}

/// quantize(constant) is a constant.
bool store(ir::Op &op, pass::Rewriter &rw) {
  const ir::Constant *c = constant_of(op.operand(0));
  const auto g = c && c->has_data ? grid_of(op) : std::nullopt;
  if (!g)
    return false;
  Emit e(op, rw);
  const auto *q = quant::per_tensor(e.context(), static_cast<float>(g->scale), g->zero_point);
  const ir::Constant *on = quant::quantize_constant(
      e.graph(), *c, quant::stored_type(e.context(), op.operand(0)->type(), g->element, q),
      quant::Range{g->min, g->max});
  if (!on)
    return false;
  Value *v = e.constant(on);
  rw.graph().set_type(v, op.result()->type());
  rw.replace(op, v);
  return true;
}

/// All rules, or those that see trees of real operators as functions: a comparison inside of one
/// must not become one of integers before the tree has been looked at.
const pass::PatternSet &patterns(bool whole) {
  const auto make = [](bool whole) {
    pass::PatternSet s;
    std::vector<ir::OpCode> fake;
    for (const ir::OpDef *def : ir::Registry::global().all())
      if (aten::has_affine_form(def->opcode) &&
          def->name.find("fake_quant") != std::string_view::npos)
        fake.push_back(def->opcode);
    s.add({"split-fake-quantize", fake, split});
    s.add({"store-weights", fake, split_channels});
    s.add({"store-constant", quantize_opcodes(), store});
    add_quantized_movement_rules(s);
    add_quantized_table_rules(s);
    if (whole) {
      add_quantized_softmax_rules(s);
      add_quantized_norm_rules(s);
      add_quantized_sum_rules(s);
      add_quantized_product_rules(s);
      add_quantized_control_rules(s);
    }
    return s;
  };
  static const pass::PatternSet functions = make(false), all = make(true);
  return whole ? all : functions;
}

} // namespace

void fold_quantize(pass::PassContext &ctx) {
  if (!is_quantized(ctx.graph))
    return;
  if (const auto profile = ctx.settings.find("tosa_profile");
      profile != ctx.settings.end() && profile->second == "fp") {
    Diagnostic d;
    d.kind = ErrorKind::Usage;
    d.code = "tosa.profile";
    d.message = "the program is quantized, which the floating-point profile cannot express";
    d.hint = "convert with --profile int, or int+fp where some operators compute on reals";
    ctx.diagnostics.add(std::move(d));
    return;
  }
  LegalizeState state;
  ctx.run(patterns(false), &state);
  ctx.run(patterns(true), &state);
}

} // namespace chute::tosa

// What the quantized rules share: reading dequantize and quantize operators, making RESCALE.
#include "aten/quantization.h"
#include "ir/walk.h"
#include "quant/params.h"
#include "tosa/quant/fold.h"

#include <algorithm>
#include <cmath>

namespace chute::tosa {

using aten::AffineForm;

namespace {

std::optional<AffineForm> form_of(const ir::Op *op, AffineForm::Step step) {
  if (!op || !aten::has_affine_form(op->opcode()))
    return std::nullopt;
  auto form = aten::affine_form(*op);
  if (!form || form->step != step)
    return std::nullopt;
  return std::move(*form);
}

/// RESCALE of a small constant, as TOSA defines it: round half up, then saturate.
Value *rescaled(Emit &e, const Value *x, ElementType to, i64 multiplier, i64 shift, i64 in_zero,
                i64 out_zero) {
  constexpr i64 kMostFolded = 1 << 16;
  const auto values = x->type().num_elements() <= kMostFolded ? int_constant(x) : std::nullopt;
  const auto whole = quant::range_of(to);
  if (!values || !whole)
    return nullptr;
  std::vector<i64> out;
  for (const i64 v : *values) {
    const __int128 product =
        static_cast<__int128>(v - in_zero) * multiplier + (__int128{1} << (shift - 1));
    out.push_back(
        std::clamp(static_cast<i64>(product >> shift) + out_zero, whole->min, whole->max));
  }
  return e.constant_ints(to, static_dims(x), out);
}

std::vector<ir::OpCode> opcodes_with(std::string_view part) {
  std::vector<ir::OpCode> out;
  for (const ir::OpDef *def : ir::Registry::global().all())
    if (aten::has_affine_form(def->opcode) && def->name.find(part) != std::string_view::npos)
      out.push_back(def->opcode);
  return out;
}

} // namespace

bool is_quantized(const ir::Graph &graph) {
  bool any = false;
  ir::walk(graph, [&](const ir::Op &op) { any = any || aten::has_affine_form(op.opcode()); });
  return any;
}

std::vector<ir::OpCode> quantize_opcodes() { return opcodes_with(".quantize_per_tensor"); }
std::vector<ir::OpCode> dequantize_opcodes() { return opcodes_with(".dequantize_per_"); }

std::optional<Stored> stored_of(const Value *v) {
  const ir::Op *op = v ? v->producer() : nullptr;
  const auto form = form_of(op, AffineForm::Step::Dequantize);
  if (!form || form->scales.size() != 1 || form->axis >= 0)
    return std::nullopt;
  return Stored{op->operand(0), op, static_cast<double>(form->scales[0]), form->zero_points[0]};
}

std::optional<Weights> weights_of(const Value *v) {
  const ir::Op *op = v ? v->producer() : nullptr;
  const auto form = form_of(op, AffineForm::Step::Dequantize);
  if (!form ||
      std::ranges::adjacent_find(form->zero_points, std::not_equal_to()) != form->zero_points.end())
    return std::nullopt;
  return Weights{op->operand(0), std::vector<double>(form->scales.begin(), form->scales.end()),
                 form->axis, form->zero_points.empty() ? 0 : form->zero_points[0]};
}

std::optional<Grid> grid_of(const ir::Op &quantize) {
  const auto form = form_of(&quantize, AffineForm::Step::Quantize);
  if (!form || form->scales.size() != 1 || form->axis >= 0)
    return std::nullopt;
  return Grid{static_cast<double>(form->scales[0]), form->zero_points[0], form->min, form->max,
              quantize.result()->type().element()};
}

std::vector<Value *> operands_of(const ir::Op &op) {
  std::vector<Value *> out;
  for (const ir::Use &u : op.operand_uses())
    out.push_back(u.value());
  return out;
}

std::vector<NamedAttr> attrs_of(const ir::Op &op, ElementType accumulator) {
  std::vector<NamedAttr> out;
  for (size_t i = 0; i < op.def().attrs.size(); ++i) {
    const std::string_view name = op.def().attrs[i].name;
    const bool replaced = accumulator != ElementType::None && name == "acc_type";
    out.push_back({name, replaced ? of(accumulator) : op.attr(static_cast<u32>(i))});
  }
  return out;
}

Value *dequantized(Emit &e, const ir::Op &like, Value *stored) {
  std::vector<Value *> operands = operands_of(like);
  operands[0] = stored;
  const std::vector<Attr> attrs(like.attrs().begin(), like.attrs().end());
  const ir::Type type =
      e.context().tensor_type(like.result()->type().element(), stored->type().shape());
  ir::Op *copy = e.graph().create(like.opcode(), operands, attrs, std::span(&type, 1), e.op.loc());
  e.graph().insert_before(*e.op.parent(), &e.op, copy);
  return copy->result();
}

Value *rescale(Emit &e, Value *x, ElementType to, std::span<const double> scales, i64 in_zero,
               i64 out_zero) {
  const ElementType from = x->type().element();
  if (from == to && scales.size() == 1 && scales[0] == 1 && in_zero == out_zero)
    return x;
  const bool wide = from != ElementType::I48; // i48 is multiplied by 16 bits only
  const int bits = wide ? 31 : 15;
  std::vector<i64> multipliers, shifts;
  for (const double scale : scales) {
    if (!(scale > 0) || !std::isfinite(scale))
      return e.unsupported("with a scale that is zero or not finite");
    int exponent = 0;
    const double fraction = std::frexp(scale, &exponent); // in [0.5, 1)
    auto multiplier = static_cast<i64>(std::llround(std::ldexp(fraction, bits)));
    if (multiplier == i64{1} << bits) {
      multiplier /= 2;
      ++exponent;
    }
    i64 shift = bits - exponent;
    for (; shift > 62; --shift)
      multiplier /= 2;
    if (shift < 2)
      return e.unsupported("with scales too far apart");
    multipliers.push_back(multiplier);
    shifts.push_back(shift);
  }
  const i64 n = static_cast<i64>(scales.size());
  if (const ir::Constant *c = constant_of(x); n == 1 && c && c->has_data)
    if (Value *folded = rescaled(e, x, to, multipliers[0], shifts[0], in_zero, out_zero))
      return folded;
  const i64 dims[] = {n};
  const ir::Type type = e.context().tensor_type(to, x->type().shape());
  return e.typed(op::RESCALE,
                 {x, e.constant_ints(wide ? ElementType::I32 : ElementType::I16, dims, multipliers),
                  e.constant_ints(ElementType::I8, dims, shifts),
                  e.single(from, static_cast<double>(in_zero)),
                  e.single(to, static_cast<double>(out_zero))},
                 {{"scale32", of(wide)},
                  {"rounding_mode", e.str("SINGLE_ROUND")},
                  {"per_channel", of(n > 1)},
                  {"input_unsigned", of(false)},
                  {"output_unsigned", of(false)}},
                 type);
}

Value *centred(Emit &e, const Stored &s) {
  if (s.element() == ElementType::I32)
    return s.zero_point == 0 ? s.value : e.sub(s.value, static_cast<double>(s.zero_point));
  return rescale(e, s.value, ElementType::I32, 1.0, s.zero_point, 0);
}

namespace {

Value *convert_by(ir::Builder &b, ir::OpCode code, Value *x, ElementType to, const Grid &g) {
  const std::initializer_list<NamedAttr> attrs{{"scale", of(g.scale)},
                                               {"zero_point", of(g.zero_point)},
                                               {"quant_min", of(g.min)},
                                               {"quant_max", of(g.max)},
                                               {"dtype", of(g.element)}};
  const ir::Type type = b.context().tensor_type(to, x->type().shape());
  return b
      .create_typed(code, std::span(&x, 1), std::span(attrs.begin(), attrs.size()),
                    std::span(&type, 1))
      ->result();
}

} // namespace

Value *quantize_by(ir::Builder &b, Value *real, const Grid &g) {
  return convert_by(b, aten::op::qd_quantize_per_tensor, real, g.element, g);
}
Value *dequantize_by(ir::Builder &b, Value *stored, const Grid &g) {
  return convert_by(b, aten::op::qd_dequantize_per_tensor, stored, ElementType::F32, g);
}

i64 on_grid(const Grid &g, double real) {
  const double stored = std::nearbyint(real / g.scale) + static_cast<double>(g.zero_point);
  return !(stored > static_cast<double>(g.min)) ? g.min
         : stored >= static_cast<double>(g.max) ? g.max
                                                : static_cast<i64>(stored);
}

Value *limited(Emit &e, Value *x, const Grid &g) {
  const auto whole = quant::range_of(g.element);
  if (!whole || (g.min <= whole->min && g.max >= whole->max))
    return x;
  return e(op::CLAMP, {x}, {{"min_val", of(g.min)}, {"max_val", of(g.max)}});
}

} // namespace chute::tosa

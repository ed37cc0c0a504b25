#include "circle/quantize/convert_op.h"

#include "circle/legalize/emit.h"
#include "pass/erase_unused.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::circle {

using ir::Op;
using quant::is_affine;
using quant::is_per_tensor;

namespace {

bool is_eight_bit(ElementType t) { return t == ElementType::U8 || t == ElementType::I8; }

/// The type that operators over both compute in; None when there is none.
ElementType wider(ElementType a, ElementType b) {
  if (a == b || b == ElementType::None)
    return a;
  if (a == ElementType::None)
    return b;
  if (a == ElementType::I16 && ir::element_bits(b) <= 8)
    return a;
  if (b == ElementType::I16 && ir::element_bits(a) <= 8)
    return b;
  // Mixed signs of 8 bits: the second (the result's) decides. 4 bits fit into 8.
  if (is_eight_bit(b) && ir::element_bits(a) <= 8)
    return b;
  return is_eight_bit(a) && ir::element_bits(b) <= 8 ? a : ElementType::None;
}

/// Finer storage first: more bits, then the smaller step.
bool finer(ir::Type a, ir::Type b) {
  const int bits_a = ir::element_bits(a.element()), bits_b = ir::element_bits(b.element());
  if (bits_a != bits_b)
    return bits_a > bits_b;
  return a.quant()->scales[0] < b.quant()->scales[0];
}

} // namespace

bool OpConverter::is_symmetric(ir::Type t) {
  return is_per_tensor(t) && t.quant()->zero_points[0] == 0 &&
         (t.element() == ElementType::I8 || t.element() == ElementType::I16);
}

bool OpConverter::may_convert(const Value *v) {
  const Op *p = v->producer();
  if (!p || role_of(*p).role == Role::None)
    return false;
  for (const ir::Use &u : p->operand_uses())
    if (u.value() && (stored(u.value()) || is_affine(u.value()->type())))
      return true;
  return false;
}

void OpConverter::left(const Op &op, const char *why) {
  if (ledger_)
    ledger_->left(op, why);
  for (Reason &r : reasons_)
    if (r.why == why) {
      ++r.count;
      return;
    }
  Diagnostic d = pass::at_op(graph_, op, ErrorKind::None, "quant.left", why);
  d.severity = Severity::Note;
  reasons_.push_back({why, 1, std::move(d)});
}

void OpConverter::report() {
  for (Reason &r : reasons_) {
    r.first.message = "computes on reals between DEQUANTIZE and QUANTIZE: " + std::string(r.why);
    if (r.count > 1)
      r.first.message += " (" + std::to_string(r.count) + " operators; the first is named)";
    ctx_.diagnostics.add(std::move(r.first));
  }
}

const ir::Constant *OpConverter::store(const ir::Constant &numbers, ir::Type type) {
  const auto [it, fresh] = stored_constants_.try_emplace({&numbers, type.id()}, nullptr);
  if (fresh) {
    it->second = quant::quantize_constant(graph_, numbers, type);
    if (it->second)
      ctx_.counters.bytes_copied += it->second->dense_bytes();
  }
  return it->second;
}

Value *OpConverter::constant(Op &position, const Value *x, ir::Type type) {
  const ir::Constant *c = constant_of(x);
  if (!c || !is_real(x) || !is_affine(type))
    return nullptr;
  const ir::Constant *q = store(*c, type);
  return q ? ir::Builder(graph_, *position.parent(), &position).constant(q) : nullptr;
}

Value *OpConverter::requantized(Op &position, const Value *stored_constant, ir::Type type) {
  const ir::Constant *c = constant_of(stored_constant);
  if (!c || !c->has_data || !is_affine(c->type) || !is_affine(type) ||
      ir::element_bits(type.element()) > ir::element_bits(c->type.element()))
    return nullptr;
  const ir::Constant *q = store(*c, type);
  return q ? ir::Builder(graph_, *position.parent(), &position).constant(q) : nullptr;
}

Value *OpConverter::constant_on_grid(Op &position, const Value *x, ir::Type like) {
  const ir::Constant *c = constant_of(x);
  if (!c || !is_real(x) || !is_per_tensor(like))
    return nullptr;
  const double scale = like.quant()->scales[0];
  const auto zero = static_cast<double>(like.quant()->zero_points[0]);
  const quant::Range range = *quant::range_of(like.element());
  const std::vector<float> values = quant::real_values(*c);
  if (values.empty())
    return nullptr;
  for (float v : values) {
    const double q = std::nearbyint(v / scale);
    if (!(std::abs(q * scale - v) <= 2e-6 * std::abs(v)) ||
        q + zero < static_cast<double>(range.min) || q + zero > static_cast<double>(range.max))
      return nullptr;
  }
  return constant(position, x,
                  quant::stored_type(graph_.context(), x->type(), like.element(), like.quant()));
}

// --- operands ------------------------------------------------------------------------------------

bool OpConverter::plan_input(Op &p, u32 operand, ElementType width) {
  Value *q = stored(p.operand(operand));
  ir::Type type = q->type();
  if (!is_per_tensor(type) && constant_of(q))
    return plan_numbers(p, operand, width, *constant_of(q));
  if (!is_per_tensor(type)) {
    left(p, "an operand that is no weight has a scale for each channel or block");
    return false;
  }
  if (type.element() != width) {
    const ir::Quantization *w = quant::widened(graph_.context(), type, width);
    if (!w) {
      left(p, "an operand's parameters do not fit the type that it computes in");
      return false;
    }
    type = quant::stored_type(graph_.context(), type, width, w);
  }
  plan_.push_back({operand, q, type, nullptr});
  return true;
}

bool OpConverter::plan_constant(Op &p, u32 operand, ElementType width) {
  const ir::Constant *c = constant_of(p.operand(operand));
  if (!c) {
    left(p, "an operand has no scale and zero point");
    return false;
  }
  return plan_numbers(p, operand, width, *c);
}

bool OpConverter::plan_numbers(Op &p, u32 operand, ElementType width, const ir::Constant &c) {
  const std::vector<float> values = quant::real_values(c);
  const std::optional<quant::Fit> fit = quant::fit(values, width);
  if (!fit || (width != ElementType::I16 && !fit->exact())) {
    left(p, "a constant operand has no scale and zero point, and rounding would change it");
    return false;
  }
  const ir::Quantization *q = quant::per_tensor(graph_.context(), fit->scale, fit->zero_point);
  plan_.push_back({operand, nullptr, quant::stored_type(graph_.context(), c.type, width, q), &c});
  return true;
}

bool OpConverter::plan_weighted(Op &p, const RoleInfo &role, ElementType width) {
  if (!plan_input(p, role.input, width))
    return false;
  const ir::Type input = plan_.back().type;
  Value *w = stored(p.operand(role.weight));
  if (!w) {
    left(p, "its weight has no scale and zero point");
    return false;
  }
  const ir::Quantization *q = w->type().quant();
  if (!constant_of(w) || !is_affine(w->type())) {
    if (!plan_input(p, role.weight, width))
      return false;
  } else if (q->kind == ir::QuantKind::PerChannel && q->axis != role.channel) {
    left(p, "its weight has a scale for each index of another dimension than the output channels");
    return false;
  } else {
    plan_.push_back({role.weight, w, w->type(), nullptr});
  }
  const Value *bias = role.bias < p.num_operands() ? p.operand(role.bias) : nullptr;
  return !bias || plan_bias(p, role, width, input, plan_.back().type);
}

bool OpConverter::plan_bias(Op &p, const RoleInfo &role, ElementType width, ir::Type input,
                            ir::Type weight) {
  const Value *v = p.operand(role.bias);
  const Value *q = stored(v);
  const ir::Constant *c = constant_of(q ? q : v);
  const std::vector<float> values = c ? quant::real_values(*c) : std::vector<float>();
  if (!c || values.empty() || c->type.rank() != 1) {
    left(p, "its bias is no constant vector");
    return false;
  }
  const std::span<const float> weight_scales = weight.quant()->scales;
  if (weight_scales.size() != 1 && weight_scales.size() != values.size()) {
    left(p, "its bias has not one number for each scale of its weight");
    return false;
  }
  const ElementType storage = width == ElementType::I16 ? ElementType::I64 : ElementType::I32;
  const auto limit = static_cast<double>(quant::range_of(storage)->max);
  std::vector<float> scales(weight_scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = input.quant()->scales[0] * weight_scales[i];
    if (!(scales[i] >= std::numeric_limits<float>::min()) || !std::isfinite(scales[i])) {
      left(p, "input scale times weight scale is no number that f32 holds");
      return false;
    }
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i] / static_cast<double>(scales[scales.size() == 1 ? 0 : i])) < limit)) {
      left(p, "its bias is too large for input scale times weight scale");
      return false;
    }
  ir::Quantization quant;
  quant.kind = scales.size() == 1 ? ir::QuantKind::PerTensor : ir::QuantKind::PerChannel;
  quant.scales = scales;
  const ir::Quantization *interned = graph_.context().quantization(quant);
  plan_.push_back(
      {role.bias, nullptr, quant::stored_type(graph_.context(), c->type, storage, interned), c});
  return true;
}

// --- the operator --------------------------------------------------------------------------------

bool OpConverter::to_integers(Op &p) {
  const RoleInfo role = role_of(p);
  if (role.role == Role::None) {
    left(p, "the operator has no form on integers");
    return false;
  }
  // The finest of the results' types; what the operator computes in.
  ir::Type result;
  for (const ir::Use *u = p.result()->first_use(); u; u = u->next()) {
    const ir::Type t = u->owner()->result()->type();
    if (!is_per_tensor(t)) {
      left(p, "its result is quantized with a scale for each channel or block");
      return false;
    }
    if (!result || finer(t, result))
      result = t;
  }
  ElementType width = ElementType::None;
  bool any = false;
  const auto widen = [&](ElementType e) { // false: there is no common type
    width = any ? wider(width, e) : e;
    any = true;
    return width != ElementType::None;
  };
  bool common = true;
  for (u32 i = 0; i < p.num_operands(); ++i) {
    const Value *q = stored(p.operand(i));
    if (!q || (role.role == Role::Weighted &&
               (i == role.bias ||
                (i == role.weight && constant_of(q) && q->type().element() != ElementType::I16))))
      continue;
    common = common && widen(q->type().element());
  }
  if (!any) {
    left(p, "none of its operands is quantized");
    return false;
  }
  if (!common || !widen(result.element()) ||
      (width != ElementType::I16 && ir::element_bits(width) > 8)) {
    left(p, "operands and result are stored in types that no operator takes together");
    return false;
  }
  const ir::Quantization *quant = result.quant();
  if (result.element() != width && !(quant = quant::covering(graph_.context(), result, width))) {
    left(p, "its result's parameters do not fit the type that it computes in");
    return false;
  }

  plan_.clear();
  if (role.role == Role::Weighted) {
    if (!stored(p.operand(role.input))) {
      left(p, "its input has no scale and zero point");
      return false;
    }
    if (!plan_weighted(p, role, width))
      return false;
  } else {
    for (u32 i = 0; i < p.num_operands(); ++i)
      if (const Value *v = p.operand(i);
          is_real(v) && !(stored(v) ? plan_input(p, i, width) : plan_constant(p, i, width)))
        return false;
  }
  apply(p);
  if (ledger_ && result.element() != width)
    ledger_->change(graph_, p, quant::Ledger::Change::Widened, result,
                    quant::stored_type(graph_.context(), result, width, quant));
  graph_.set_type(p.result(),
                  quant::stored_type(graph_.context(), p.result()->type(), width, quant));
  return true;
}

void OpConverter::record(const Op &p, const Plan &step) {
  using Change = quant::Ledger::Change;
  const bool wide = ir::element_bits(step.type.element()) > 16;
  if (step.numbers)
    ledger_->change(graph_, p, wide ? Change::Bias : Change::Chosen, step.numbers->type, step.type);
  else if (step.value->type() != step.type)
    ledger_->change(graph_, p, Change::Widened, step.value->type(), step.type);
}

void OpConverter::apply(Op &p) {
  for (const Plan &step : plan_) {
    Value *v = step.value;
    if (ledger_)
      record(p, step);
    if (step.numbers)
      v = ir::Builder(graph_, *p.parent(), &p).constant(store(*step.numbers, step.type));
    else if (v->type() != step.type && constant_of(v))
      v = ir::Builder(graph_, *p.parent(), &p).constant(store(*constant_of(v), step.type));
    else if (v->type() != step.type)
      v = make_quantize(graph_, p, v, step.type);
    const Value *before = p.operand(step.operand);
    graph_.set_operand(&p, step.operand, v);
    pass::erase_if_unused(graph_, before);
  }
  ++ctx_.counters.rewrites;
}

} // namespace chute::circle

// Convolutions, matrix products, sums over axes and averages accumulate integers:
//
//   quantize(CONV2D(dequantize(x), dequantize(w), b))  ->  RESCALE(CONV2D(x, w, b in steps of
//   both))
//
// What follows before the rounding (an addend per channel, a factor, a clamp, another shape) joins:
// addends become integers in the accumulator's steps, factors part of the RESCALE.
#include "quant/params.h"
#include "tosa/quant/fold.h"

#include <algorithm>
#include <cmath>

namespace chute::tosa {

namespace {

/// An accumulator: integers in steps of `scales`, one of them, or one per index of the last
/// dimension.
struct Accumulator {
  Value *value = nullptr;
  std::vector<double> scales;
  double low = -HUGE_VAL, high = HUGE_VAL; ///< clamped to these reals afterwards
};

/// An axis of weights that is the last two dimensions together.
constexpr int kBoth = 1000;

bool is_convolution(ir::OpCode c) {
  return c == op::CONV2D || c == op::CONV3D || c == op::DEPTHWISE_CONV2D ||
         c == op::TRANSPOSE_CONV2D;
}

/// Real numbers in steps of `scales` (per element of the last dimension), as `to`.
Value *addend(Emit &e, const Value *v, std::span<const double> scales, ElementType to) {
  std::vector<float> reals;
  if (const ir::Constant *c = constant_of(v)) {
    if (!c->has_data)
      return nullptr;
    reals = quant::real_values(*c);
  } else {
    const auto w = weights_of(v);
    const ir::Constant *stored = w ? constant_of(w->value) : nullptr;
    if (!stored || !stored->has_data)
      return nullptr;
    const auto plain = int_constant(w->value);
    if (!plain)
      return nullptr;
    // Biases have one dimension of channels.
    for (size_t i = 0; i < plain->size(); ++i)
      reals.push_back(
          static_cast<float>(static_cast<double>((*plain)[i] - w->zero_point) *
                             w->scales[w->scales.size() == 1 ? 0 : i % w->scales.size()]));
  }
  const Dims shape = static_dims(v);
  const auto last = static_cast<size_t>(shape.empty() ? 1 : shape.back());
  if (scales.size() != 1 && last != scales.size() && last != 1)
    return nullptr;
  Dims wide = shape;
  std::vector<i64> out;
  const size_t repeat = last == 1 && scales.size() > 1 ? scales.size() : 1;
  if (repeat > 1)
    wide.back() = static_cast<i64>(repeat);
  constexpr double kMost = 2147483647.0;
  for (size_t i = 0; i < reals.size() * repeat; ++i) {
    const double s = scales[scales.size() == 1 ? 0 : i % scales.size()];
    const double stored = std::nearbyint(static_cast<double>(reals[i / repeat]) / s);
    if (!std::isfinite(stored))
      return nullptr;
    out.push_back(static_cast<i64>(std::clamp(stored, -kMost, kMost)));
  }
  return e.constant_ints(to, wide, out);
}

std::optional<Accumulator> read(Emit &e, Value *v, int depth);

std::optional<Accumulator> convolution(Emit &e, const ir::Op &p) {
  const auto x = stored_of(p.operand(0));
  auto w = weights_of(p.operand(1));
  if (const ir::Op *split = p.operand(1)->producer();
      !w && p.opcode() == op::DEPTHWISE_CONV2D && split && split->opcode() == op::RESHAPE) {
    // [H, W, C, M] of channels C * M: the scales stay those of the results, one after the other.
    w = weights_of(split->operand(0));
    const ir::Constant *c = w ? constant_of(w->value) : nullptr;
    if (!c || !c->has_data || w->axis < 0 ||
        product(std::span<const i64>(static_dims(w->value))
                    .subspan(static_cast<size_t>(w->axis) + 1)) != 1)
      return std::nullopt;
    w->value = e.constant(reshaped(e.graph(), *c, p.operand(1)->type().shape()));
    w->axis = kBoth;
  }
  if (!x || !w || w->value->type().element() != ElementType::I8)
    return std::nullopt;
  if (x->element() != ElementType::I8 && x->element() != ElementType::I16)
    return std::nullopt;
  const Dims kernel = static_dims(w->value);
  const i64 channels = p.result()->type().shape().back().value();
  std::vector<double> scales;
  if (w->scales.size() == 1) {
    scales.push_back(x->scale * w->scales[0]);
  } else if (p.opcode() == op::DEPTHWISE_CONV2D) {
    const i64 multiplier = kernel[3];
    if (w->axis != 2 && w->axis != 3 && w->axis != kBoth)
      return std::nullopt;
    for (i64 c = 0; c < channels; ++c) {
      const i64 of_channel = w->axis == 2 ? c / multiplier : w->axis == 3 ? c % multiplier : c;
      scales.push_back(x->scale * w->scales[static_cast<size_t>(of_channel)]);
    }
  } else {
    if (w->axis != 0 || static_cast<i64>(w->scales.size()) != channels)
      return std::nullopt;
    for (const double s : w->scales)
      scales.push_back(x->scale * s);
  }
  const ElementType wide = x->element() == ElementType::I16 ? ElementType::I48 : ElementType::I32;
  Value *bias = addend(e, p.operand(2), scales, wide);
  if (!bias)
    return std::nullopt;
  const std::vector<NamedAttr> attrs = attrs_of(p, wide);
  Value *operands[] = {x->value, w->value, bias,
                       e.single(x->element(), static_cast<double>(x->zero_point)),
                       e.single(ElementType::I8, static_cast<double>(w->zero_point))};
  const ir::Type type = e.context().tensor_type(wide, p.result()->type().shape());
  ir::Op *made = e.typed(p.opcode(), operands, attrs, std::span(&type, 1));
  made->set_loc(p.loc()); // the layer's place, not that of the quantize operator behind it
  return Accumulator{made->result(), scales};
}

std::optional<Accumulator> product_of(Emit &e, const ir::Op &p) {
  const auto a = stored_of(p.operand(0));
  if (!a || (a->element() != ElementType::I8 && a->element() != ElementType::I16))
    return std::nullopt;
  std::vector<double> scales;
  Value *right = nullptr;
  i64 zero = 0;
  if (const auto b = stored_of(p.operand(1))) {
    right = b->value;
    zero = b->zero_point;
    scales.push_back(a->scale * b->scale);
  } else if (const auto w = weights_of(p.operand(1)); w && w->axis == 2) {
    right = w->value;
    zero = w->zero_point;
    for (const double s : w->scales)
      scales.push_back(a->scale * s);
  } else {
    return std::nullopt;
  }
  Value *left = a->value;
  i64 left_zero = a->zero_point;
  // MATMUL takes one type: 8-bit operands beside 16-bit ones are widened, which loses nothing.
  const bool wide =
      left->type().element() == ElementType::I16 || right->type().element() == ElementType::I16;
  const ElementType common = wide ? ElementType::I16 : ElementType::I8;
  if (left->type().element() != common) {
    left = rescale(e, left, common, 1.0, left_zero, 0);
    left_zero = 0;
  }
  if (right->type().element() != common) {
    right = rescale(e, right, common, 1.0, zero, 0);
    zero = 0;
  }
  if (!left || !right)
    return std::nullopt;
  const ir::Type type = e.context().tensor_type(wide ? ElementType::I48 : ElementType::I32,
                                                p.result()->type().shape());
  return Accumulator{e.typed(op::MATMUL,
                             {left, right, e.single(common, static_cast<double>(left_zero)),
                              e.single(common, static_cast<double>(zero))},
                             {}, type),
                     scales};
}

std::optional<Accumulator> sum(Emit &e, const ir::Op &p, int depth) {
  std::optional<Accumulator> in;
  if (const auto s = stored_of(p.operand(0)))
    in = Accumulator{s->element() == ElementType::I32 ? nullptr : centred(e, *s), {s->scale}};
  else
    in = read(e, p.operand(0), depth + 1);
  if (!in || !in->value || in->value->type().element() != ElementType::I32 ||
      in->scales.size() != 1)
    return std::nullopt;
  const ir::Type type = e.context().tensor_type(ElementType::I32, p.result()->type().shape());
  in->value = e.typed(op::REDUCE_SUM, {in->value}, {{"axis", p.attr("axis")}}, type);
  return in;
}

/// The accumulator that `v` is the real value of.
std::optional<Accumulator> read(Emit &e, Value *v, int depth) {
  const ir::Op *p = v->producer();
  if (!p || depth > 12)
    return std::nullopt;
  const ir::OpCode code = p->opcode();
  if (is_convolution(code))
    return convolution(e, *p);
  if (code == op::MATMUL)
    return product_of(e, *p);
  if (code == op::REDUCE_SUM)
    return sum(e, *p, depth);
  if (code == op::RESHAPE) {
    auto in = read(e, p->operand(0), depth + 1);
    if (!in || (in->scales.size() > 1 &&
                (v->type().rank() == 0 ||
                 v->type().shape().back() != p->operand(0)->type().shape().back())))
      return std::nullopt;
    in->value = e.reshape(in->value, static_dims(v));
    return in;
  }
  if (code == op::ADD) {
    for (u32 i = 0; i < 2; ++i) {
      Value *other = p->operand(1 - i);
      if (stored_of(p->operand(i)) || constant_of(p->operand(i)))
        continue;
      if (!constant_of(other) && !weights_of(other))
        continue;
      auto in = read(e, p->operand(i), depth + 1);
      if (!in || in->value->type().element() != ElementType::I32)
        return std::nullopt;
      Value *more = addend(e, other, in->scales, ElementType::I32);
      if (!more)
        return std::nullopt;
      in->value = e.add(in->value, more);
      return in;
    }
    return std::nullopt;
  }
  if (code == op::MUL) {
    for (u32 i = 0; i < 2; ++i) {
      const auto factor = splat_of(p->operand(1 - i));
      if (!factor || !(*factor > 0) || constant_of(p->operand(i)))
        continue;
      auto in = read(e, p->operand(i), depth + 1);
      if (!in || !std::ranges::equal(in->value->type().shape(), v->type().shape()))
        return std::nullopt;
      for (double &s : in->scales)
        s *= *factor;
      return in;
    }
    return std::nullopt;
  }
  if (code == op::CLAMP) {
    auto in = read(e, p->operand(0), depth + 1);
    if (!in)
      return std::nullopt;
    in->low = std::max(in->low, p->attr("min_val").scalar_as_double());
    in->high = std::min(in->high, p->attr("max_val").scalar_as_double());
    return depth == 0 ? in : std::nullopt;
  }
  return std::nullopt;
}

bool accumulate(ir::Op &op, pass::Rewriter &rw) {
  const auto g = op.operand(0) && op.operand(0)->producer() ? grid_of(op) : std::nullopt;
  if (!g)
    return false;
  Emit e(op, rw);
  const auto acc = read(e, op.operand(0), 0);
  if (!acc)
    return false;
  std::vector<double> scales = acc->scales;
  for (double &s : scales)
    s /= g->scale;
  Value *out = rescale(e, acc->value, g->element, scales, 0, g->zero_point);
  if (!out)
    return false;
  Grid clamped = *g;
  clamped.min = std::max(g->min, on_grid(*g, acc->low));
  clamped.max = std::min(g->max, on_grid(*g, acc->high));
  return e.finish(limited(e, out, clamped));
}

/// Averages keep the grid: quantize(AVG_POOL2D(dequantize(x))).
bool average(ir::Op &op, pass::Rewriter &rw) {
  const auto s = stored_of(op.operand(0));
  if (!s || (s->element() != ElementType::I8 && s->element() != ElementType::I16) || !s->dequantize)
    return false;
  Emit e(op, rw);
  const std::vector<NamedAttr> attrs = attrs_of(op, ElementType::I32);
  Value *zero = e.single(s->element(), static_cast<double>(s->zero_point));
  Value *operands[] = {s->value, zero, zero};
  const ir::Type type = e.context().tensor_type(s->element(), e.type().shape());
  ir::Op *made = e.typed(op::AVG_POOL2D, operands, attrs, std::span(&type, 1));
  return e.finish(dequantized(e, *s->dequantize, made->result()));
}

/// RESIZE: nearest moves elements; bilinear multiplies by the two scale numerators.
bool resize(ir::Op &op, pass::Rewriter &rw) {
  const auto s = stored_of(op.operand(0));
  if (!s || (s->element() != ElementType::I8 && s->element() != ElementType::I16) || !s->dequantize)
    return false;
  Emit e(op, rw);
  std::vector<Value *> operands = operands_of(op);
  operands[0] = s->value;
  const NamedAttr mode[] = {{"mode", op.attr("mode")}};
  const bool nearest = op.attr("mode").as_string() == "NEAREST";
  if (nearest) {
    const ir::Type type = e.context().tensor_type(s->element(), e.type().shape());
    return e.finish(dequantized(
        e, *s->dequantize, e.typed(op::RESIZE, operands, mode, std::span(&type, 1))->result()));
  }
  const auto scale = int_constant(op.operand(1));
  if (!scale || scale->size() != 4)
    return false;
  // Bilinear accumulates products: the zero point must be gone before, as RESIZE knows none. The
  // weights of a pixel add up to the product of the numerators, so the zero point does, too.
  const double weight = static_cast<double>((*scale)[0] * (*scale)[2]);
  const bool is_short = s->element() == ElementType::I16;
  const ir::Type type =
      e.context().tensor_type(is_short ? ElementType::I48 : ElementType::I32, e.type().shape());
  Value *wide = e.typed(op::RESIZE, operands, mode, std::span(&type, 1))->result();
  Value *back = rescale(e, wide, s->element(), 1.0 / weight, 0, 0);
  return back && e.finish(dequantized(e, *s->dequantize, back));
}

} // namespace

void add_quantized_product_rules(pass::PatternSet &set) {
  set.add({"accumulate", quantize_opcodes(), accumulate});
  set.add("average-stored", {op::AVG_POOL2D}, average);
  set.add("resize-stored", {op::RESIZE}, resize);
}

} // namespace chute::tosa

// fuse-linear: arithmetic and padding around FULLY_CONNECTED and convolutions moves into them.
//
//   fully_connected(mul(x, c), w, b)  → fully_connected(x, w * c by column, b)
//   fully_connected(add(x, c), w, b)  → fully_connected(x, w, b + w·c)      sub likewise
//   add(fully_connected(x, w1, b1), fully_connected(x, w2, b2)) → fully_connected(x, w1+w2, b1+b2)
//   conv_2d(pad(x)) VALID             → conv_2d(x) SAME, where that means the same windows; a
//                                       transpose between is looked through; depthwise likewise
//   (arithmetic behind a convolution: fold-batch-norm)
//
// c: a scalar, or one number per input feature. New constants are computed in double, rounded once.
// Bound: (n + 4) * 2^-24 * (|w|·|x| + |b|) per output over n input features, twice what the
// original promises. Padding is exact, quantized too: both pad with what stands for zero.
//
// Illegal or left alone: an affine that widens x, an activation between, other users of the inner
// value, weights of more than 4096 elements that something else uses, weights above 64 MiB,
// results that are not finite, quantized arithmetic.
#include "circle/legalize/window.h"
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <cmath>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

constexpr i64 kMostWeights = i64{16} << 20;

bool all_finite(std::span<const float> v) {
  for (float f : v)
    if (!std::isfinite(f))
      return false;
  return true;
}

/// FULLY_CONNECTED over floats with plain constant weights [units, inputs].
struct Layer {
  Op *op = nullptr;
  size_t units = 0, inputs = 0;
  Value *weights = nullptr, *bias = nullptr;
};

Layer layer(Op *op) {
  if (!op || op->opcode() != op::FULLY_CONNECTED || !is_f32(op->result()) ||
      !is_f32(op->operand(0)) || op->attr("weights_format").as_string() != "DEFAULT")
    return {};
  Value *w = op->operand(1), *b = op->num_operands() > 2 ? op->operand(2) : nullptr;
  if (!constant_of(w) || !is_f32(w) || w->type().rank() != 2 ||
      w->type().num_elements() > kMostWeights || (b && (!constant_of(b) || !is_f32(b))))
    return {};
  return {op, static_cast<size_t>(w->type().dim(0).value()),
          static_cast<size_t>(w->type().dim(1).value()), w, b};
}

/// The bias as numbers, zeros when it is absent; nullopt when it has another shape.
std::optional<std::vector<float>> bias_of(const Layer &l) {
  if (!l.bias)
    return std::vector<float>(l.units, 0.0f);
  std::optional<std::vector<float>> b = floats(l.bias, static_cast<i64>(l.units));
  if (!b || b->size() != l.units)
    return {};
  return b;
}

void set_bias(Rewriter &rw, const Layer &l, std::span<const float> bias) {
  const SymInt units(static_cast<i64>(l.units));
  const Type type = rw.context().tensor_type(ElementType::F32, std::span(&units, 1));
  rw.graph().set_operand(l.op, 2, f32_constant(rw, *l.op, type, bias));
}

bool affine_before_layer(Op &op, Rewriter &rw) {
  const Layer l = layer(&op);
  Op *p = l.op ? op.operand(0)->producer() : nullptr;
  if (!p || (p->opcode() != op::MUL && p->opcode() != op::ADD && p->opcode() != op::SUB))
    return false;
  const u32 side = constant_of(p->operand(0)) && p->opcode() != op::SUB ? 0 : 1;
  Value *x = p->operand(1 - side);
  if (!constant_of(p->operand(side)) || constant_of(x))
    return false;
  if (x->type() != p->result()->type()) {
    rw.reject("the arithmetic widens the operand");
    return false;
  }
  const std::optional<std::vector<float>> c = per_last(p->operand(side), l.inputs);
  if (!c || x->type().rank() == 0 || x->type().shape().back() != SymInt(static_cast<i64>(l.inputs)))
    return false;
  if (has_activation(*p) || !p->result()->has_one_use()) {
    rw.reject("an activation, or other users of the value between");
    return false;
  }
  const bool scale = p->opcode() == op::MUL;
  if (scale && !may_duplicate(l.weights)) {
    rw.reject("the weights have other users");
    return false;
  }
  std::optional<std::vector<float>> w = floats(l.weights, kMostWeights);
  std::optional<std::vector<float>> b = bias_of(l);
  if (!w || !b)
    return false;
  const double sign = p->opcode() == op::SUB ? -1.0 : 1.0;
  for (size_t u = 0; u < l.units; ++u) {
    double shift = 0;
    for (size_t i = 0; i < l.inputs; ++i) {
      float &weight = (*w)[u * l.inputs + i];
      if (scale)
        weight = static_cast<float>(double{weight} * double{(*c)[i]});
      else
        shift += double{weight} * double{(*c)[i]};
    }
    (*b)[u] = static_cast<float>(double{(*b)[u]} + sign * shift);
  }
  if (!all_finite(*w) || !all_finite(*b)) {
    rw.reject("the new weights are not finite");
    return false;
  }
  if (scale)
    rw.graph().set_operand(&op, 1, f32_constant(rw, op, l.weights->type(), *w));
  else
    set_bias(rw, l, *b);
  rw.graph().set_operand(&op, 0, x);
  return true;
}

bool same_options(const Op &a, const Op &b) {
  for (u32 i = 0; i < a.num_attrs(); ++i)
    if (a.attr(i) != b.attr(i))
      return false;
  return true;
}

bool sum_of_layers(Op &op, Rewriter &rw) {
  if (has_activation(op) || op.operand(0) == op.operand(1))
    return false;
  const Layer a = layer(op.operand(0)->producer()), b = layer(op.operand(1)->producer());
  if (!a.op || !b.op || a.op->operand(0) != b.op->operand(0) || has_activation(*a.op) ||
      !same_options(*a.op, *b.op) || a.weights->type() != b.weights->type() ||
      a.op->result()->type() != op.result()->type() ||
      b.op->result()->type() != op.result()->type() || (!a.bias) != (!b.bias))
    return false;
  if (!a.op->result()->has_one_use() || !b.op->result()->has_one_use() ||
      !may_duplicate(a.weights) || !may_duplicate(b.weights)) {
    rw.reject("a layer or its weights have other users");
    return false;
  }
  std::optional<std::vector<float>> w = floats(a.weights, kMostWeights), bias = bias_of(a);
  const std::optional<std::vector<float>> w2 = floats(b.weights, kMostWeights), bias2 = bias_of(b);
  if (!w || !w2 || !bias || !bias2)
    return false;
  for (size_t i = 0; i < w->size(); ++i)
    (*w)[i] += (*w2)[i];
  for (size_t i = 0; i < bias->size(); ++i)
    (*bias)[i] += (*bias2)[i];
  if (!all_finite(*w) || !all_finite(*bias))
    return false;
  const SymInt units(static_cast<i64>(a.units));
  const Type bias_type = rw.context().tensor_type(ElementType::F32, std::span(&units, 1));
  Value *operands[] = {a.op->operand(0), f32_constant(rw, op, a.weights->type(), *w),
                       a.bias ? f32_constant(rw, op, bias_type, *bias) : nullptr};
  const Type type = op.result()->type();
  const std::vector<Attr> attrs(a.op->attrs().begin(), a.op->attrs().end());
  Op *both = rw.graph().create(op::FULLY_CONNECTED, operands, attrs, std::span(&type, 1), op.loc());
  rw.graph().insert_before(*op.parent(), &op, both);
  rw.replace(op, both->result());
  return true;
}

// --- padding -------------------------------------------------------------------------------------

/// A constant PAD before the convolution, whatever transpose lies between.
struct Padded {
  Value *x = nullptr;
  Dims pairs; ///< in the convolution's order of dimensions
  Dims perm;  ///< of the transpose between; empty: none
};

Padded padded(const Value *v) {
  Padded out;
  const Op *p = v->producer();
  if (p && p->opcode() == op::TRANSPOSE && v->has_one_use()) {
    const Transposed t = transposed(v);
    if (!t || !stored_alike(t.source->type(), v->type()))
      return {};
    out.perm = t.perm;
    p = t.source->has_one_use() ? t.source->producer() : nullptr;
  }
  if (!p || p->opcode() != op::PAD || !stored_alike(p->operand(0)->type(), v->type()))
    return {};
  const std::optional<Dims> pads = small_ints(p->operand(1));
  if (!pads || pads->size() != 8 || v->type().rank() != 4)
    return {};
  for (size_t d = 0; d < 4; ++d) {
    const size_t from = out.perm.empty() ? d : static_cast<size_t>(out.perm[d]);
    out.pairs.push_back((*pads)[2 * from]);
    out.pairs.push_back((*pads)[2 * from + 1]);
  }
  out.x = p->operand(0);
  return out;
}

bool pad_into_convolution(Op &op, Rewriter &rw) {
  const Value *data = op.operand(0);
  if (op.attr("padding").as_string() != "VALID")
    return false;
  const Padded pad = padded(data);
  if (!pad.x)
    return false;
  if (pad.pairs[0] || pad.pairs[1] || pad.pairs[6] || pad.pairs[7]) {
    rw.reject("batch or channels are padded");
    return false;
  }
  const std::span<const SymInt> filter = op.operand(1)->type().shape();
  if (filter.size() != 4 || !filter[1].is_static() || !filter[2].is_static())
    return false;
  const auto axis = [&](int d, std::string_view stride, std::string_view dilation) {
    const SymInt before = pad.x->type().dim(
        pad.perm.empty() ? d : static_cast<int>(pad.perm[static_cast<size_t>(d)]));
    return Axis{before,
                op.result()->type().dim(d),
                filter[static_cast<size_t>(d)].value(),
                op.attr(stride).as_int().value(),
                pad.pairs[static_cast<size_t>(2 * d)],
                op.attr(dilation).as_int().value()};
  };
  const Axis h = axis(1, "stride_h", "dilation_h_factor"),
             w = axis(2, "stride_w", "dilation_w_factor");
  if (h.in.is_symbolic() || w.in.is_symbolic() || !h.is_same() || !w.is_same()) {
    rw.reject("SAME means other windows");
    return false;
  }
  Value *x = pad.perm.empty() ? pad.x : make_transpose(rw, op, pad.x, pad.perm);
  rw.graph().set_operand(&op, 0, x);
  const auto slot = static_cast<u32>(op.def().attr_index("padding"));
  rw.graph().set_attr(&op, slot, rw.context().string_attr("SAME"));
  return true;
}

} // namespace

void add_linear_rules(pass::PatternSet &set) {
  set.add("affine-before-layer", {op::FULLY_CONNECTED}, affine_before_layer);
  set.add("sum-of-layers", {op::ADD}, sum_of_layers);
  set.add("pad-into-convolution", {op::CONV_2D, op::DEPTHWISE_CONV_2D}, pad_into_convolution);
}

void fuse_linear(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_linear_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

// fuse-composites: arithmetic that spells one operator becomes that operator.
//
//   0.5 * x * (1 + erf(x / sqrt 2))                       → gelu(x)
//   0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 x^3))) → gelu(x) {approximate}
//   maximum(x, a * x), 0 < a < 1                          → leaky_relu(x)
//   relu(x) + 0.5 * alpha * (x - |x|)                     → prelu(x, alpha)
//   exp(x - max(x)) / sum(exp(x - max(x))), last dim      → softmax(x)
//   x * rsqrt(mean(x^2) + eps) * gamma, last dim          → rms_norm(x, gamma)
//   (x - mean(x)) * rsqrt(var(x) + eps) * gamma + beta over height and width
//                                                         → instance_norm(x, gamma, beta)
//
// Products may be nested and ordered in any way; erf is the custom operator "Erf" that TensorFlow's
// converters leave. f32 only. Bound: the operator computes the same function with fewer roundings;
// results differ by at most 8 ulp, relative to the largest intermediate.
//
// Left alone: inner values that something else uses, fused activations, constants that are not the
// function's (relative 1e-5), other ranks than runtimes take. (layer norm and attention have no
// operator of their own in the format that takes these operands.)
#include "circle/passes.h"
#include "circle/passes/rules/product.h"

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

bool is_erf_of(const Value *v, const Value *x) {
  const Op *p = v->producer();
  return p && p->opcode() == op::CUSTOM && p->num_operands() == 1 && p->num_results() == 1 &&
         v->has_one_use() && p->attr("custom_code").as_string() == "Erf" &&
         scaled_by(p->operand(0), std::sqrt(0.5)) == x;
}

bool is_cube_of(const Value *v, const Value *x) {
  Op *p = v->producer();
  if (!p)
    return false;
  if (p->opcode() == op::POW)
    return p->operand(0) == x && real_splat(p->operand(1)) == 3.0;
  if (p->opcode() != op::MUL)
    return false;
  const Product m = product_of(*p);
  if (!m.valid || m.number != 1)
    return false;
  if (m.values.size() == 3)
    return m.values[0] == x && m.values[1] == x && m.values[2] == x;
  for (size_t i = 0; m.values.size() == 2 && i < 2; ++i)
    if (const Op *s = made_by(m.values[i], op::SQUARE);
        s && s->operand(0) == x && m.values[1 - i] == x)
      return true;
  return false;
}

/// x + 0.044715 x^3 scaled by sqrt(2 / pi).
bool is_tanh_argument(const Value *v, const Value *x) {
  const Value *sum = scaled_by(v, std::sqrt(2 / M_PI));
  const Op *add = sum ? made_for_one(sum, op::ADD) : nullptr;
  if (!add || has_activation(*add))
    return false;
  for (u32 i = 0; i < 2; ++i) {
    if (add->operand(i) != x)
      continue;
    const Op *scale = made_for_one(add->operand(1 - i), op::MUL);
    for (u32 k = 0; scale && k < 2; ++k)
      if (const auto n = real_splat(scale->operand(k));
          n && near_number(*n, 0.044715) && is_cube_of(scale->operand(1 - k), x))
        return true;
  }
  return false;
}

bool gelu(Op &op, Rewriter &rw, const Product &m) {
  if (m.values.size() != 2 || m.number != 0.5)
    return false;
  for (size_t i = 0; i < 2; ++i) {
    Value *x = m.values[i], *gate = m.values[1 - i];
    const Value *inner = plus_number(gate, 1);
    if (!inner || x->type() != op.result()->type() || !inner->has_one_use())
      continue;
    const Op *tanh = made_by(inner, op::TANH);
    const bool approximate = tanh && is_tanh_argument(tanh->operand(0), x);
    if (!approximate && !is_erf_of(inner, x))
      continue;
    Op *custom = inner->producer();
    rw.replace(op, make(rw, op, op::GELU, {x}, {{"approximate", Attr::of_bool(approximate)}}));
    if (!approximate)
      erase_towards(rw, custom);
    return true;
  }
  return false;
}

/// mean(x * x) over the last dimension, kept, plus a positive number: the number.
std::optional<double> mean_square(const Value *v, const Value *x) {
  const Op *root = made_for_one(v, op::RSQRT);
  const Op *add = root ? made_for_one(root->operand(0), op::ADD) : nullptr;
  if (!add || has_activation(*add))
    return {};
  for (u32 i = 0; i < 2; ++i) {
    const std::optional<double> eps = real_splat(add->operand(i));
    const Op *mean = made_for_one(add->operand(1 - i), op::MEAN);
    if (!eps || !(*eps > 0) || !mean || !mean->attr("keep_dims").as_bool())
      continue;
    const std::optional<Dims> axes = small_ints(mean->operand(1));
    const Op *square = made_for_one(mean->operand(0), op::MUL);
    const Op *power = square ? nullptr : mean->operand(0)->producer();
    const bool squares = (square && !has_activation(*square) && square->operand(0) == x &&
                          square->operand(1) == x) ||
                         (power && mean->operand(0)->has_one_use() && power->operand(0) == x &&
                          (power->opcode() == op::SQUARE ||
                           (power->opcode() == op::POW && real_splat(power->operand(1)) == 2.0)));
    if (squares && axes && axes->size() == 1 &&
        ((*axes)[0] == -1 || (*axes)[0] == x->type().rank() - 1))
      return eps;
  }
  return {};
}

bool rms_norm(Op &op, Rewriter &rw, const Product &m) {
  if (m.values.size() != 3 || m.number != 1)
    return false;
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < 3; ++k) {
      Value *x = m.values[i], *gamma = m.values[k];
      if (i == k)
        continue;
      const Value *scale = m.values[3 - i - k];
      if (!constant_of(gamma) || x->type() != op.result()->type())
        continue;
      const int rank = x->type().rank();
      if (rank < 3 || rank > 4 || !x->type().dim(rank - 1).is_static())
        continue;
      const auto channels = static_cast<size_t>(x->type().dim(rank - 1).value());
      const std::optional<double> eps = mean_square(scale, x);
      const std::optional<std::vector<float>> g = eps ? per_last(gamma, channels) : std::nullopt;
      if (!g)
        continue;
      const SymInt size(static_cast<i64>(channels));
      const Type type = rw.context().tensor_type(ElementType::F32, std::span(&size, 1));
      Value *weights = f32_constant(rw, op, type, *g);
      rw.replace(op, make(rw, op, op::RMS_NORM, {x, weights}, {{"epsilon", Attr::of_float(*eps)}}));
      return true;
    }
  return false;
}

bool products(Op &op, Rewriter &rw) {
  // Rooted at the outermost product only.
  if (op.result()->has_one_use()) {
    const Op *user = op.result()->first_use()->owner();
    if (user->opcode() == op::MUL && !has_activation(*user) && !has_activation(op)) {
      const Op *other = user->operand(user->operand(0) == op.result() ? 1 : 0)->producer();
      if (other && other->has(ir::trait::kConstant))
        return false;
    }
  }
  const Product m = product_of(op);
  return m.valid && (gelu(op, rw, m) || rms_norm(op, rw, m));
}

bool leaky_relu(Op &op, Rewriter &rw) {
  for (u32 i = 0; i < 2; ++i) {
    Value *x = op.operand(i);
    const Op *scale = made_for_one(op.operand(1 - i), op::MUL);
    if (!scale || has_activation(*scale) || !is_f32(x) || x->type() != op.result()->type())
      continue;
    for (u32 k = 0; k < 2; ++k) {
      const std::optional<double> a = real_splat(scale->operand(k));
      if (!a || scale->operand(1 - k) != x)
        continue;
      if (!(*a > 0 && *a < 1)) {
        rw.reject("the slope is not between 0 and 1");
        return false;
      }
      rw.replace(op, make(rw, op, op::LEAKY_RELU, {x}, {{"alpha", Attr::of_float(*a)}}));
      return true;
    }
  }
  return false;
}

/// relu(x) + 0.5 * alpha * (x - |x|)
bool prelu(Op &op, Rewriter &rw) {
  if (has_activation(op) || !is_f32(op.result()))
    return false;
  for (u32 i = 0; i < 2; ++i) {
    const Op *relu = made_for_one(op.operand(i), op::RELU);
    Op *mul = made_for_one(op.operand(1 - i), op::MUL);
    if (!relu || !mul)
      continue;
    Value *x = relu->operand(0);
    const Product m = product_of(*mul);
    if (!m.valid || m.number != 0.5 || m.values.size() != 2 || x->type() != op.result()->type())
      continue;
    for (size_t k = 0; k < 2; ++k) {
      Value *alpha = m.values[k];
      const Op *sub = made_for_one(m.values[1 - k], op::SUB);
      const Op *abs =
          sub && !has_activation(*sub) ? made_for_one(sub->operand(1), op::ABS) : nullptr;
      if (!abs || abs->operand(0) != x || sub->operand(0) != x || !constant_of(alpha) ||
          alpha->type().rank() > x->type().rank() || !is_f32(alpha))
        continue;
      const std::optional<SymDims> shape = broadcast(alpha->type().shape(), x->type().shape());
      if (!shape || !std::equal(shape->begin(), shape->end(), x->type().shape().begin(),
                                x->type().shape().end()))
        continue;
      rw.replace(op, make(rw, op, op::PRELU, {x, alpha}));
      return true;
    }
  }
  return false;
}

bool over_last(const Op *reduce, const Value *x) {
  const std::optional<Dims> axes = reduce ? small_ints(reduce->operand(1)) : std::nullopt;
  return axes && axes->size() == 1 && reduce->attr("keep_dims").as_bool() &&
         ((*axes)[0] == -1 || (*axes)[0] == x->type().rank() - 1);
}

bool softmax(Op &op, Rewriter &rw) {
  Value *e = op.operand(0);
  const Op *exp = made_by(e, op::EXP), *sum = made_for_one(op.operand(1), op::SUM);
  if (!exp || !sum || has_activation(op) || !is_f32(e) || sum->operand(0) != e ||
      e->type() != op.result()->type() || !over_last(sum, e) || e->count_uses() != 2)
    return false;
  const Op *sub = made_for_one(exp->operand(0), op::SUB);
  const Op *max =
      sub && !has_activation(*sub) ? made_for_one(sub->operand(1), op::REDUCE_MAX) : nullptr;
  if (!max || max->operand(0) != sub->operand(0) || !over_last(max, e) ||
      sub->operand(0)->type() != op.result()->type())
    return false;
  rw.replace(op, make(rw, op, op::SOFTMAX, {sub->operand(0)}, {{"beta", Attr::of_float(1.0)}}));
  return true;
}

/// Axes 1 and 2 of an NHWC tensor, kept.
bool over_pixels(const Op *mean) {
  std::optional<Dims> axes = mean ? small_ints(mean->operand(1)) : std::nullopt;
  if (!axes || axes->size() != 2 || !mean->attr("keep_dims").as_bool())
    return false;
  for (i64 &a : *axes)
    a += a < 0 ? 4 : 0;
  return ((*axes)[0] == 1 && (*axes)[1] == 2) || ((*axes)[0] == 2 && (*axes)[1] == 1);
}

bool instance_norm(Op &op, Rewriter &rw) {
  if (has_activation(op) || !is_f32(op.result()) || op.result()->type().rank() != 4)
    return false;
  for (u32 i = 0; i < 2; ++i) {
    Value *beta = op.operand(i);
    Op *mul = made_for_one(op.operand(1 - i), op::MUL);
    if (!mul || !constant_of(beta))
      continue;
    const Product m = product_of(*mul);
    if (!m.valid || m.values.size() != 3 || m.number != 1)
      continue;
    Value *gamma = nullptr, *centered = nullptr;
    const Op *root = nullptr;
    for (Value *v : m.values)
      if (constant_of(v))
        gamma = v;
      else if (const Op *r = made_for_one(v, op::RSQRT))
        root = r;
      else
        centered = v;
    const Op *sub = centered ? made_by(centered, op::SUB) : nullptr;
    const Op *add = root ? made_for_one(root->operand(0), op::ADD) : nullptr;
    if (!gamma || !sub || !add || has_activation(*sub) || has_activation(*add) ||
        centered->count_uses() != 3)
      continue;
    Value *x = sub->operand(0);
    const Op *mean = made_for_one(sub->operand(1), op::MEAN);
    if (!over_pixels(mean) || mean->operand(0) != x || x->type() != op.result()->type())
      continue;
    for (u32 k = 0; k < 2; ++k) {
      const std::optional<double> eps = real_splat(add->operand(k));
      const Op *var = made_for_one(add->operand(1 - k), op::MEAN);
      const Op *square = var ? made_for_one(var->operand(0), op::MUL) : nullptr;
      if (!eps || !(*eps > 0) || !over_pixels(var) || !square || has_activation(*square) ||
          square->operand(0) != centered || square->operand(1) != centered ||
          !x->type().dim(3).is_static())
        continue;
      const auto channels = static_cast<size_t>(x->type().dim(3).value());
      const auto g = per_last(gamma, channels), b = per_last(beta, channels);
      if (!g || !b)
        continue;
      const SymInt size(static_cast<i64>(channels));
      const Type type = rw.context().tensor_type(ElementType::F32, std::span(&size, 1));
      rw.replace(op, make(rw, op, op::INSTANCE_NORM,
                          {x, f32_constant(rw, op, type, *g), f32_constant(rw, op, type, *b)},
                          {{"epsilon", Attr::of_float(*eps)}}));
      return true;
    }
  }
  return false;
}

} // namespace

void add_composite_rules(pass::PatternSet &set) {
  set.add("gelu-or-rms-norm", {op::MUL, op::DIV}, products);
  set.add("leaky-relu", {op::MAXIMUM}, leaky_relu);
  set.add("prelu", {op::ADD}, prelu);
  set.add("softmax", {op::DIV}, softmax);
  set.add("instance-norm", {op::ADD}, instance_norm);
}

void fuse_composites(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_composite_rules(s);
    add_sigmoid_rules(s);
    add_legacy_gelu_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <cmath>

// Activations beyond relu, relu6, sigmoid, tanh, gelu, elu, leaky_relu, hardswish and prelu.
namespace chute::aten {

namespace {

/// log(1 + exp(x)), linear where exp would lose everything: PyTorch's threshold rule.
V softplus(Emit &e, V x, double beta, double threshold) {
  V scaled = e.mul(x, beta);
  V soft = e.div(e.log1p(e.exp(scaled)), beta);
  return e.where(e.gt(scaled, threshold), x, soft);
}

V elu(Emit &e, V x, double alpha, double scale, double input_scale) {
  V below = e.mul(e.expm1(e.mul(x, input_scale)), alpha * scale);
  return e.where(e.gt(x, 0.0), e.mul(x, scale), below);
}

V hardsigmoid(Emit &e, V x) { return e.div(e.relu6(e.add(x, 3.0)), 6.0); }

V softmax(Emit &e, bool logarithm) {
  // With dtype=f32 the conversion comes first; f16 without it is computed in f32 by the kernel.
  // PyTorch takes integers when there are none.
  V x = e.to_float(e.cast(e.in(), e.type().element()));
  const int dim = e.dim("dim", x->type().rank());
  if (x->type().rank() == 0) {
    x = e.view(x, {1});
    return e.view(logarithm ? e.log_softmax(x, 0) : e.softmax(x, 0), {});
  }
  return logarithm ? e.log_softmax(x, dim) : e.softmax(x, dim);
}

/// Rows without a finite score give 0, not NaN.
V safe_softmax(Emit &e) {
  V x = e.cast(e.in(), e.type().element());
  const int dim = e.dim("dim", x->type().rank());
  if (x->type().rank() > 0 && x->type().dim(dim) == SymInt(0))
    return x;
  V empty = e.eq(e.amax(x, {dim}, true), -INFINITY);
  V s = e.softmax(x, dim);
  return e.where(empty, e.scalar_like(0, s), s);
}

} // namespace

void add_activation_rules(pass::PatternSet &set) {
  set.add("silu", {op::silu}, rule<[](Emit &e) {
            V x = e.up(e.in());
            return e.mul(x, e.sigmoid(x));
          }>);
  set.add("mish", {op::mish}, rule<[](Emit &e) {
            V x = e.up(e.in());
            return e.mul(x, e.tanh(softplus(e, x, 1, 20)));
          }>);
  set.add("softplus", {op::softplus}, rule<[](Emit &e) {
            return softplus(e, e.up(e.in()), e.number("beta"), e.number("threshold"));
          }>);
  set.add("log-sigmoid", {op::log_sigmoid}, rule<[](Emit &e) {
            V x = e.up(e.in());
            return e.sub(e.minimum(x, 0.0), e.log1p(e.exp(e.neg(e.abs(x)))));
          }>);
  set.add("hardsigmoid", {op::hardsigmoid},
          rule<[](Emit &e) { return hardsigmoid(e, e.up(e.in())); }>);
  set.add("hardtanh", {op::hardtanh}, rule<[](Emit &e) {
            V x = e.in();
            if (e.number("min_val") == 0 && e.number("max_val") == 6)
              return e.relu6(x);
            const ElementType t = x->type().element();
            return e.minimum(e.maximum(x, e.scalar(e.attr("min_val"), t)),
                             e.scalar(e.attr("max_val"), t));
          }>);
  set.add("elu", {op::elu}, rule<[](Emit &e) -> V {
            const double alpha = e.number("alpha"), scale = e.number("scale");
            if (alpha == 1 && scale == 1 && e.number("input_scale") == 1)
              return nullptr;
            return elu(e, e.up(e.in()), alpha, scale, e.number("input_scale"));
          }>);
  set.add("celu", {op::celu}, rule<[](Emit &e) {
            return elu(e, e.up(e.in()), e.number("alpha"), 1, 1 / e.number("alpha"));
          }>);
  set.add("selu", {op::selu}, rule<[](Emit &e) {
            return elu(e, e.up(e.in()), 1.6732632423543772848170429916717,
                       1.0507009873554804934193349852946, 1);
          }>);
  set.add("glu", {op::glu}, rule<[](Emit &e) {
            V x = e.up(e.in());
            const int d = e.dim("dim", x->type().rank());
            const SymInt half = e.type().dim(d);
            const Values parts = e.split(x, {half, half}, d);
            return e.mul(parts[0], e.sigmoid(parts[1]));
          }>);
  set.add("threshold", {op::threshold}, rule<[](Emit &e) {
            V x = e.in();
            return e.where(e.gt(x, e.number("threshold")), x, e.number("value"));
          }>);
  set.add("hardshrink", {op::hardshrink}, rule<[](Emit &e) {
            V x = e.in();
            return e.where(e.le(e.abs(x), e.number("lambd")), e.scalar_like(0, x), x);
          }>);
  set.add("softshrink", {op::softshrink}, rule<[](Emit &e) {
            V x = e.in();
            const double l = e.number("lambd");
            // x * 0 keeps NaN.
            return e.where(e.gt(e.abs(x), l), e.sub(x, e.mul(e.sign(x), l)), e.mul(x, 0.0));
          }>);
  set.add("prelu-kernel", {op::u_prelu_kernel}, rule<[](Emit &e) {
            V x = e.in(0);
            return e.where(e.gt(x, 0.0), x, e.mul(e.in(1), x));
          }>);
  set.add("rrelu", {op::rrelu}, rule<[](Emit &e) -> V {
            if (e.flag("training"))
              return e.reject("random slopes of a model in training mode");
            return e.op(
                op::leaky_relu, {e.in()},
                {{"negative_slope", Attr::of_float((e.number("lower") + e.number("upper")) / 2)}});
          }>);
  set.add("rrelu-functional", {op::rrelu_with_noise_functional}, rule<[](Emit &e) -> Values {
            if (e.flag("training") || e.used(1))
              return e.reject("random slopes of a model in training mode"), Values{};
            const double slope = (e.number("lower") + e.number("upper")) / 2;
            return {e.op(op::leaky_relu, {e.in()}, {{"negative_slope", Attr::of_float(slope)}}),
                    nullptr};
          }>);
  set.add("softmax", {op::softmax_int}, rule<[](Emit &e) { return softmax(e, false); }>);
  set.add("log-softmax", {op::log_softmax_int}, rule<[](Emit &e) { return softmax(e, true); }>);
  set.add("half-to-float", {op::u_softmax, op::u_log_softmax}, rule<[](Emit &e) -> V {
            const ElementType t = e.in()->type().element();
            if (e.type().element() == t && ir::is_float(t) && e.in()->type().rank() != 0)
              return nullptr;
            return softmax(e, e.root().opcode() == op::u_log_softmax);
          }>);
  set.add("safe-softmax", {op::u_safe_softmax}, rule<safe_softmax>);
}

} // namespace chute::aten

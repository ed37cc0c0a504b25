// legalize-dynamic-layers: FULLY_CONNECTED whose weights are computed becomes BATCH_MATMUL.
//
//   fully_connected(x, w, b) → batch_matmul(x as a matrix, w) {adjoint_rhs}, + b, activation
//
// For runtimes whose FULLY_CONNECTED wants constant weights; part of no level.
//
// f32 with static shapes. Exact up to the order of sums. Left alone: constant weights, shuffled or
// sparse weight formats, activations that no operator of their own computes.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

/// The operator that computes a fused activation; nullopt when there is none.
std::optional<OpCode> activation_operator(std::string_view name) {
  if (name == "RELU")
    return op::RELU;
  if (name == "RELU6")
    return op::RELU6;
  if (name == "RELU_N1_TO_1")
    return op::RELU_N1_TO_1;
  if (name == "TANH")
    return op::TANH;
  return std::nullopt;
}

bool dynamic_layer(Op &op, Rewriter &rw) {
  Value *x = op.operand(0), *w = op.operand(1),
        *bias = op.num_operands() > 2 ? op.operand(2) : nullptr;
  const Type out = op.result()->type();
  if (constant_of(w) || !is_f32(x) || !is_f32(w) || !is_f32(out) || w->type().rank() != 2 ||
      !x->type().has_static_shape() || !w->type().has_static_shape() || !out.has_static_shape() ||
      op.attr("weights_format").as_string() != "DEFAULT")
    return false;
  const i64 units = w->type().dim(0).value(), inputs = w->type().dim(1).value();
  if (inputs < 1 || units < 1 || x->type().num_elements() % inputs ||
      (bias && (!is_f32(bias) || !has_elements(bias->type().shape(), units))))
    return false;
  const std::string_view activation = op.attr("fused_activation_function").as_string();
  const std::optional<OpCode> after = activation_operator(activation);
  if (activation != "NONE" && !after) {
    rw.reject("its activation has no operator");
    return false;
  }
  const i64 rows = x->type().num_elements() / inputs;
  const SymInt matrix[] = {rows, inputs}, product[] = {rows, units};
  if (!same_shape(x->type(), rw.context().with_shape(x->type(), matrix)))
    x = make_reshape(rw, op, x, matrix);
  const NamedAttr adjoint{"adjoint_rhs", Attr::of_bool(true)};
  const Type type = rw.context().with_shape(out, product);
  Value *operands[] = {x, w};
  ir::Builder b = rw.before(op);
  Value *y = b.create_typed(op::BATCH_MATMUL, operands, std::span(&adjoint, 1), std::span(&type, 1))
                 ->result();
  if (!same_shape(type, out))
    y = make_reshape(rw, op, y, out.shape());
  if (bias)
    y = make(rw, op, op::ADD, {y, bias}, {{"pot_scale_int16", Attr::of_bool(false)}});
  if (after)
    y = make(rw, op, *after, {y});
  rw.replace(op, y);
  return true;
}

} // namespace

void legalize_dynamic_layers(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("dynamic-layer", {op::FULLY_CONNECTED}, dynamic_layer);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

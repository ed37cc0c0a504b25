// Microscaling formats as element types (setting mx=types; see aten's expand-quantization):
//
//   mx_fake_quantize(x)   → dequantize(quantize(x)), with blocks of 32 along an axis as the type
//
// Circle has element types for int8 and fp4 and no layout for constants of either: constants have
// become the rounded f32 numbers before.
#include "circle/legalize/emit.h"
#include "quant/mx.h"
#include "quant/params.h"

namespace chute::circle {

namespace {

namespace a = aten::op;

Value *quantized(Emit &e) {
  Value *x = e.arg(0);
  const std::optional<quant::MxFormat> format = quant::mx_format(e.attr("elem_format").as_string());
  i64 axis = e.integer("axis");
  axis += axis < 0 ? x->type().rank() : 0;
  if (!format || e.attr("shared_exp_method").as_string() != "max" ||
      e.attr("round").as_string() != "nearest")
    return e.unsupported("with an element format or rounding that is not defined",
                         "use shared_exp_method 'max' and round 'nearest'");
  if (x->type().element() != ElementType::F32 || axis < 0 || axis >= x->type().rank())
    return e.unsupported("along a dimension that its operand has not");
  if (format->storage == ElementType::None)
    return e.unsupported("over a dimension of a size known only at run time",
                         "export with a fixed size of the dimension that blocks lie along");
  ir::Quantization q;
  q.kind = ir::QuantKind::MX;
  q.axis = static_cast<i32>(axis);
  q.block_size = quant::kMxBlock;
  return e.quantize(
      x, quant::stored_type(e.context(), x->type(), format->storage, e.context().quantization(q)));
}

bool lower_quantize(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  Value *q = quantized(e);
  if (q)
    rw.replace(op, q);
  return q != nullptr;
}

Value *fake(Emit &e) {
  Value *q = quantized(e);
  return q ? e.dequantize(q) : nullptr;
}

/// Of a constant that was rounded before: the constant.
Value *dequantized(Emit &e) {
  Value *q = e.arg(0);
  return q->type().element() == ElementType::F32 ? q : e.dequantize(q);
}

} // namespace

void add_mx_rules(pass::PatternSet &set) {
  set.add("mx-fake-quantize", {a::circle_custom_mx_fake_quantize}, lower<fake>);
  set.add("mx-quantize", {a::circle_custom_quantize_mx}, lower_quantize);
  set.add("mx-dequantize", {a::circle_custom_dequantize_mx}, lower<dequantized>);
}

} // namespace chute::circle

// Quantization: every form becomes QUANTIZE and DEQUANTIZE, whose integer type carries the
// parameters.
//
//   fake_quantize(x)   → dequantize(quantize(x))
//   quantize(x)        → quantize(x)
//   dequantize(q)      → dequantize(q)
//
// The integer type is the smallest that holds quant_min and quant_max. Where the range is narrower
// than the type by more than one step, MINIMUM and MAXIMUM keep it (constants are clamped when
// `fold-quantize` stores them). Parameters that a program computes at run time are no part of a
// type: those operators become arithmetic on reals.
#include "aten/quantization.h"
#include "circle/legalize/emit.h"
#include "quant/ledger.h"
#include "quant/params.h"

namespace chute::circle {

namespace {

namespace a = aten::op;
using aten::AffineForm;
using ir::Quantization;

const Quantization *quantization_of(ir::Context &ctx, const AffineForm &f) {
  Quantization q;
  q.kind = f.axis < 0 ? ir::QuantKind::PerTensor : ir::QuantKind::PerChannel;
  q.axis = std::max(f.axis, 0);
  q.scales = {f.scales.data(), f.scales.size()};
  q.zero_points = {f.zero_points.data(), f.zero_points.size()};
  return ctx.quantization(q);
}

/// The reals that lie within the range of a form narrower than its integer type. Narrow-range
/// symmetric forms (-127, -32767) keep the type's whole range: the values differ by one step and
/// only below what the form can hold.
Value *clamped(Emit &e, Value *x, const AffineForm &f, ElementType storage) {
  const quant::Range whole = *quant::range_of(storage);
  const auto real = [&](i64 stored) {
    return static_cast<double>(static_cast<float>(stored - f.zero_points[0]) * f.scales[0]);
  };
  if (f.axis >= 0) // one bound for each channel: left to the type
    return x;
  if (f.max < whole.max)
    x = e(op::MINIMUM, {x, e.scalar(ElementType::F32, real(f.max))});
  if (f.min > whole.min + 1)
    x = e(op::MAXIMUM, {x, e.scalar(ElementType::F32, real(f.min))});
  return x;
}

Value *refuse(Emit &e, const Diagnostic &why) {
  if (why.code == "aten.quant.run_time")
    return e.unsupported(why.message, "export the model with constant scales and zero points");
  return e.unsupported(why.message, "calibrate the model again before exporting it");
}

/// A constant whose range is narrower than its type is clamped here, once.
Value *clamped_constant(Emit &e, const ir::Constant &c, const AffineForm &f, Type stored) {
  const ir::Constant *q =
      quant::quantize_constant(e.graph(), c, stored, quant::Range{f.min, f.max});
  return q ? e.constant(q) : nullptr;
}

Value *stored_value(Emit &e, Value *x, const AffineForm &f, ElementType storage) {
  ir::Context &ctx = e.context();
  const Type stored = quant::stored_type(ctx, x->type(), storage, quantization_of(ctx, f));
  // An operand that this very grid gave lies on it.
  const ir::Op *p = x->producer();
  if (p && p->opcode() == op::DEQUANTIZE && p->operand(0)->type() == stored)
    return p->operand(0);
  const bool narrow = *quant::range_of(storage) != quant::Range{f.min, f.max};
  if (const ir::Constant *c = constant_of(x); c && narrow)
    if (Value *q = clamped_constant(e, *c, f, stored))
      return q;
  return e.quantize(narrow ? clamped(e, x, f, storage) : x, stored);
}

Value *quantized(Emit &e, Value *x, const AffineForm &f, ElementType storage) {
  Value *q = stored_value(e, x, f, storage);
  if (quant::Ledger *ledger = quant::Ledger::active()) {
    ledger->site(e.graph(), e.op, q);
    if (quant::range_of(storage)->min < f.min && f.axis < 0 && !constant_of(q) &&
        quant::range_of(storage)->min + 1 == f.min)
      ledger->change(e.graph(), e.op, quant::Ledger::Change::Rounding, q->type(), q->type());
  }
  return q;
}

Value *fake(Emit &e, const AffineForm &f) {
  Value *x = e.arg(0);
  if (f.step == AffineForm::Step::None) {
    if (quant::Ledger *ledger = quant::Ledger::active())
      ledger->site(e.graph(), e.op, nullptr, "it is switched off");
    return x;
  }
  if (x->type().element() != ElementType::F32)
    return e.unsupported("of " + std::string(ir::element_type_name(x->type().element())));
  const auto storage = quant::storage_for({f.min, f.max});
  if (!storage)
    return e.unsupported("with a range beyond 32 bits");
  for (i64 z : f.zero_points)
    if (!quant::range_of(*storage)->holds(z))
      return e.unsupported("with a zero point outside its range",
                           "calibrate the model again before exporting it");
  Value *q = quantized(e, x, f, *storage);
  const ir::Op *p = x->producer();
  return p && p->opcode() == op::DEQUANTIZE && p->operand(0) == q ? x : e.dequantize(q);
}

bool lower_fake(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  if (op.num_results() > 1 && op.result(1)->has_uses()) {
    static_cast<void>(e.unsupported("whose mask is used", "masks are for training only"));
    return false;
  }
  Result<AffineForm> f = aten::affine_form(op);
  Value *v = f ? fake(e, *f) : refuse(e, f.error());
  if (!v)
    return false;
  Value *values[] = {v, nullptr};
  return e.finish(std::span(values, op.num_results()));
}

/// quantized_decomposed.quantize_*: the result keeps its integer type and gains parameters.
bool lower_quantize(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  Result<AffineForm> f = aten::affine_form(op);
  if (!f)
    return refuse(e, f.error()) != nullptr;
  Value *x = e.arg(0);
  if (x->type().element() != ElementType::F32 || !ir::is_integer(f->storage)) {
    static_cast<void>(e.unsupported("between types without integers"));
    return false;
  }
  rw.replace(op, quantized(e, x, *f, f->storage));
  return true;
}

/// Gives the stored integers their parameters. False when they have others.
Value *with_parameters(Emit &e, Value *q, const Quantization *quant) {
  const Type type = e.context().with_quant(q->type(), quant);
  if (q->type() == type)
    return q;
  if (q->type().quant())
    return nullptr;
  if (const ir::Constant *c = constant_of(q))
    return e.constant(e.graph().add_constant(type, c->data, c->owner, c->strides, c->has_data));
  e.graph().set_type(q, type);
  return q;
}

bool lower_dequantize(ir::Op &op, pass::Rewriter &rw) {
  Emit e(op, rw);
  Result<AffineForm> f = aten::affine_form(op);
  if (!f)
    return refuse(e, f.error()) != nullptr;
  Value *q = e.arg(0);
  if (!ir::is_integer(q->type().element()) || e.element() != ElementType::F32) {
    static_cast<void>(e.unsupported("between types without integers"));
    return false;
  }
  const Value *raw = q;
  const bool had_none = !q->type().quant();
  q = with_parameters(e, q, quantization_of(e.context(), *f));
  if (quant::Ledger *ledger = quant::Ledger::active(); ledger && q && (had_none || q != raw))
    ledger->site(e.graph(), op, q);
  if (!q) {
    static_cast<void>(e.unsupported("with other parameters than its operand was quantized with"));
    return false;
  }
  return e.finish(e.dequantize(q));
}

} // namespace

void add_quantize_rules(pass::PatternSet &set) {
  set.add("fake-quantize",
          {a::fake_quantize_per_tensor_affine, a::fake_quantize_per_tensor_affine_cachemask,
           a::fake_quantize_per_tensor_affine_tensor_qparams,
           a::u_fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
           a::u_fake_quantize_learnable_per_tensor_affine, a::fake_quantize_per_channel_affine,
           a::fake_quantize_per_channel_affine_cachemask, a::qd_fake_quant_per_channel},
          lower_fake);
  set.add("quantize",
          {a::qd_quantize_per_tensor, a::qd_quantize_per_tensor_tensor,
           a::qd_quantize_per_tensor_tensor2, a::qd_quantize_per_channel},
          lower_quantize);
  set.add("dequantize",
          {a::qd_dequantize_per_tensor, a::qd_dequantize_per_tensor_tensor,
           a::qd_dequantize_per_tensor_tensor2, a::qd_dequantize_per_channel},
          lower_dequantize);
}

} // namespace chute::circle

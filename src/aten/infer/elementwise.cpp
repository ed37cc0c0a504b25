#include "aten/infer/args.h"

#include <array>

/// Operators whose result element i depends on the operands' elements i.
namespace chute::aten::rule {

using ir::ElementType;
using ir::Type;

namespace {

ElementType promoted(InferArgs &a) {
  const auto e = promoted_type(a.op());
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return e.value_or(ElementType::F32);
}

/// Broadcast shape of every tensor operand but `out`.
Dims common_shape(InferArgs &a) {
  Dims shape;
  const ir::OpDef &def = a.op().def();
  for (u32 i = 0; i < def.operands.size(); ++i)
    if (def.operands[i].name != "out" && a.has(i))
      a.broadcast_into(shape, a.tensor(i).shape());
  return shape;
}

} // namespace

Status same(InferArgs &a) { return a.done(a.tensor(0)); }

/// `out=` forms: `out`, the last operand, gives the element type and takes the shape.
Status elementwise_out(InferArgs &a) {
  const auto out = static_cast<u32>(a.op().def().operands.size() - 1);
  return a.done(a.tensor(out).element(), common_shape(a));
}

Status elementwise(InferArgs &a) {
  const ir::Op &op = a.op();
  ElementType e = op.has(ir::trait::kPromotes) ? promoted(a) : a.tensor(0).element();
  if (op.has(ir::trait::kIntToFloat))
    e = int_to_float(e);
  if (op.has(ir::trait::kComparison))
    e = ElementType::Bool;
  return a.done(e, common_shape(a));
}

Status div_mode(InferArgs &a) {
  const ElementType e = promoted(a);
  return a.done(a.has_attr("rounding_mode") ? e : int_to_float(e), common_shape(a));
}

Status float_power(InferArgs &a) {
  const bool complex = ir::is_complex(promoted(a));
  return a.done(complex ? ElementType::C128 : ElementType::F64, common_shape(a));
}

Status where(InferArgs &a) {
  const ElementType condition = a.tensor(0).element();
  a.check(condition == ElementType::Bool || condition == ElementType::U8, kDtypeError,
          "the condition must be boolean");
  return a.done(promoted(a), common_shape(a));
}

Status data_dependent_indices(InferArgs &a) {
  return a.data_dependent("the number of true elements");
}

Status masked_fill(InferArgs &a) {
  Dims shape = dims_of(a.tensor(0));
  a.broadcast_into(shape, a.tensor(1).shape());
  return a.done(a.tensor(0).element(), shape);
}

Status magnitude(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!ir::is_complex(x.element()))
    return a.done(x);
  return a.done(real_element(x.element()), x.shape());
}

Status angle(InferArgs &a) {
  return a.done(int_to_float(real_element(a.tensor(0).element())), a.tensor(0).shape());
}

Status square(InferArgs &a) {
  // x ** 2: a boolean tensor becomes an integer one.
  const ElementType e = a.tensor(0).element();
  return a.done(e == ElementType::Bool ? ElementType::I64 : e, a.tensor(0).shape());
}

Status make_complex(InferArgs &a) {
  ElementType e = ElementType::C64;
  if (a.tensor(0).element() == ElementType::F64)
    e = ElementType::C128;
  else if (a.tensor(0).element() == ElementType::F16)
    e = ElementType::C32;
  return a.done(e, common_shape(a));
}

Status view_as_complex(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() > 0 && x.shape().back() == ir::SymInt(2), kShapeError,
               "the last dimension must be 2"))
    return a.failed();
  ElementType e = ElementType::C64;
  if (x.element() == ElementType::F64)
    e = ElementType::C128;
  else if (x.element() == ElementType::F16)
    e = ElementType::C32;
  return a.done(e, x.shape().first(x.shape().size() - 1));
}

Status view_as_real(InferArgs &a) {
  Dims shape = dims_of(a.tensor(0));
  shape.push_back(2);
  return a.done(real_element(a.tensor(0).element()), shape);
}

Status real_part(InferArgs &a) {
  return a.done(real_element(a.tensor(0).element()), a.tensor(0).shape());
}

Status with_mask(InferArgs &a) {
  a.add(a.tensor(0));
  return a.done(ElementType::Bool, a.tensor(0).shape());
}

Status loss(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  const auto e = result_type(types);
  if (!a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types"))
    return a.failed();
  if (a.literal("reduction", 1) != 0)
    return a.done(*e, DimSpan());
  return a.done(*e, a.broadcast_all(types));
}

Status class_loss(InferArgs &a) {
  const Type x = a.tensor(0), target = a.tensor(1);
  if (a.literal("reduction", 1) != 0 || !a.check(x.rank() >= 1, kShapeError, "needs classes"))
    return a.done(x.element(), DimSpan());
  if (!ir::is_float(target.element()))
    return a.done(x.element(), target.shape());
  // Class probabilities: the class dimension (1, or 0 without a batch) goes.
  Dims shape = dims_of(x);
  shape.erase(shape.begin() + (x.rank() > 1 ? 1 : 0));
  return a.done(x.element(), shape);
}

Status nll_loss_forward(InferArgs &a) {
  const Type x = a.tensor(0);
  if (a.literal("reduction", 1) == 0 && x.rank() == 2)
    a.add(x.element(), x.shape().first(1));
  else
    a.add(x.element(), DimSpan());
  return a.done(x.element(), DimSpan());
}

Status rrelu_noise(InferArgs &a) {
  a.add(a.tensor(0));
  return a.done(a.tensor(1));
}

Status bool_value(InferArgs &a) { return a.done(a.ctx().bool_type()); }

Status int_value(InferArgs &a) { return a.done(a.ctx().int_type()); }

Status item(InferArgs &a) {
  const ElementType e = a.tensor(0).element();
  if (e == ElementType::Bool)
    return a.done(a.ctx().bool_type());
  return a.done(ir::is_integer(e) ? a.ctx().int_type() : a.ctx().float_type());
}

Status check(InferArgs &a) {
  // The functional forms return their token, the last operand.
  if (a.op().def().results.empty())
    return a.done();
  return a.done(a.tensor(static_cast<u32>(a.op().def().operands.size() - 1)));
}

} // namespace chute::aten::rule

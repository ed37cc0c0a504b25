#include "circle/legalize/emit.h"

#include <algorithm>

namespace chute::circle {

namespace {

i64 to_i32(i64 v) {
  return std::clamp<i64>(v, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max());
}

} // namespace

Value *Emit::i32(i64 v) {
  const auto x = static_cast<chute::i32>(to_i32(v));
  return b_.constant_i32(std::span<const chute::i32>(&x, 1), true);
}

Value *Emit::i32s(std::span<const i64> v) {
  std::vector<chute::i32> x;
  for (i64 i : v)
    x.push_back(static_cast<chute::i32>(to_i32(i)));
  return b_.constant_i32(x);
}

Value *Emit::i32_pairs(std::span<const i64> flat) {
  const Dims shape{static_cast<i64>(flat.size() / 2), 2};
  return constant_ints(ElementType::I32, shape, flat);
}

Value *Emit::add(Value *x, Value *y, std::string_view activation) {
  // The schema's default for pot_scale_int16 restricts int16 scales to powers of two.
  return (*this)(op::ADD, {x, y},
                 {{"fused_activation_function", str(activation)}, {"pot_scale_int16", of(false)}});
}
Value *Emit::sub(Value *x, Value *y) {
  return (*this)(op::SUB, {x, y}, {{"pot_scale_int16", of(false)}});
}
Value *Emit::mul(Value *x, Value *y) { return (*this)(op::MUL, {x, y}); }
Value *Emit::div(Value *x, Value *y) { return (*this)(op::DIV, {x, y}); }

Value *Emit::cast(Value *x, ElementType to) {
  const ElementType from = x->type().element();
  if (from == to)
    return x;
  return typed(op::CAST, {x}, {{"in_data_type", of(from)}, {"out_data_type", of(to)}},
               context().tensor_type(to, x->type().shape()));
}

Value *Emit::select(Value *c, Value *x, Value *y) { return (*this)(op::SELECT_V2, {c, x, y}); }

Value *Emit::as_bool(Value *x) {
  if (x->type().element() == ElementType::Bool)
    return x;
  return (*this)(op::NOT_EQUAL, {x, like(x, 0)});
}

Value *Emit::transpose(Value *x, std::span<const i64> perm) {
  if (is_identity(perm))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return b_.constant(permuted(graph(), *c, perm));
  return (*this)(op::TRANSPOSE, {x, i32s(perm)});
}

Value *Emit::reshape(Value *x, std::span<const SymInt> shape) {
  const std::span<const SymInt> from = x->type().shape();
  if (std::equal(from.begin(), from.end(), shape.begin(), shape.end()))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return b_.constant(reshaped(graph(), *c, shape));
  Value *operand = shape_operand(shape, {x}, true);
  if (!operand)
    return unsupported("the target shape has dimensions that no input tells",
                       "export with fewer dynamic dimensions");
  SymDims stated(shape.begin(), shape.end());
  for (SymInt &d : stated)
    if (d.is_symbolic())
      d = -1;
  const bool one = std::ranges::count(stated, SymInt(-1)) <= 1;
  return typed(op::RESHAPE, {x, operand},
               {{"new_shape", one ? context().ints_attr(stated) : context().ints_attr({})}},
               context().tensor_type(x->type().element(), shape));
}

Value *Emit::slice_between(Value *x, i64 axis, SymInt begin, SymInt end, i64 step, SymInt size) {
  const auto rank = static_cast<size_t>(x->type().rank());
  const auto a = static_cast<size_t>(axis);
  const SymInt extent = x->type().dim(static_cast<int>(axis));
  constexpr i64 kBeyond = i64{1} << 30; // torch writes INT64_MAX for "to the end"
  const bool to_end = end == extent || (end.is_static() && end.value() >= kBeyond);
  if (begin == SymInt(0) && to_end && step == 1)
    return x;
  SymDims begins(rank, 0), ends(rank, 0), shape(x->type().shape().begin(), x->type().shape().end());
  i64 begin_mask = 0, end_mask = 0;
  for (size_t i = 0; i < rank; ++i)
    if (i != a) {
      begin_mask |= i64{1} << i;
      end_mask |= i64{1} << i;
    }
  begins[a] = begin;
  if (to_end)
    end_mask |= i64{1} << a;
  else
    ends[a] = end;
  shape[a] = size;
  Value *from = sizes_operand(begins, {x}), *to = sizes_operand(ends, {x});
  if (!from || !to)
    return nullptr;
  Dims steps(rank, 1);
  steps[a] = step;
  return typed(op::STRIDED_SLICE, {x, from, to, i32s(steps)},
               {{"begin_mask", of(begin_mask)}, {"end_mask", of(end_mask)}},
               context().tensor_type(x->type().element(), shape));
}

Value *Emit::slices(Value *x, const Dims &begin, const Dims &end, const Dims &steps) {
  return (*this)(op::STRIDED_SLICE, {x, i32s(begin), i32s(end), i32s(steps)});
}

Value *Emit::slice(Value *x, i64 axis, i64 begin, i64 end, i64 step) {
  const auto rank = static_cast<size_t>(x->type().rank());
  Dims begins(rank, 0), ends, steps(rank, 1);
  i64 end_mask = 0;
  SymDims shape;
  for (size_t i = 0; i < rank; ++i) {
    const SymInt d = x->type().dim(static_cast<int>(i));
    ends.push_back(d.is_static() ? d.value() : 0);
    if (d.is_symbolic())
      end_mask |= i64{1} << i;
    shape.push_back(d);
  }
  const auto a = static_cast<size_t>(axis);
  if (begin == 0 && step == 1 && shape[a] == SymInt(end))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return b_.constant(sliced(graph(), *c, axis, begin, end, step));
  begins[a] = begin;
  ends[a] = end;
  steps[a] = step;
  end_mask &= ~(i64{1} << a);
  shape[a] = std::max<i64>(0, (end - begin + step - 1) / step);
  return typed(op::STRIDED_SLICE, {x, i32s(begins), i32s(ends), i32s(steps)},
               {{"end_mask", of(end_mask)}}, context().tensor_type(x->type().element(), shape));
}

Value *Emit::pad(Value *x, const Dims &pairs, std::optional<double> value) {
  if (std::ranges::all_of(pairs, [](i64 p) { return p == 0; }))
    return x;
  if (value && *value != 0)
    return (*this)(op::PADV2, {x, i32_pairs(pairs), like(x, *value)});
  return (*this)(op::PAD, {x, i32_pairs(pairs)});
}

Value *Emit::reduce(OpCode code, Value *x, const Dims &axes, bool keep) {
  // Counted from the end: onert drops leading dimensions of a FULLY_CONNECTED result and of what is
  // computed from it, and only then still finds the right ones.
  Dims from_end;
  for (i64 a : axes)
    from_end.push_back(a - x->type().rank());
  return (*this)(code, {x, i32s(from_end)}, {{"keep_dims", of(keep)}});
}

Value *Emit::concat(std::span<Value *const> parts, i64 axis) {
  if (parts.size() == 1)
    return parts[0];
  const NamedAttr attr{"axis", of(axis)};
  return (*this)(op::CONCATENATION, parts, std::span<const NamedAttr>(&attr, 1));
}

} // namespace chute::circle

#pragma once

#include "circle/legalize/emit.h"
#include "ir/builder.h"
#include "pass/rewriter.h"

/// What Circle passes ask of operators. Internal to circle/passes.
namespace chute::circle {

/// A TRANSPOSE whose permutation is a constant.
struct Transposed {
  Value *source = nullptr; ///< null: it is none
  Dims perm;
  explicit operator bool() const { return source != nullptr; }
};

inline Transposed transposed(const Value *v) {
  const ir::Op *p = v ? v->producer() : nullptr;
  if (!p || p->opcode() != op::TRANSPOSE)
    return {};
  std::optional<Dims> perm = int_constant(p->operand(1));
  if (!perm)
    return {};
  for (i64 &d : *perm)
    d += d < 0 ? static_cast<i64>(perm->size()) : 0;
  // A file may declare a result that is stored differently: no mere move of elements.
  const Type from = p->operand(0)->type(), to = v->type();
  const bool per_channel = from.quant() && from.quant()->kind != ir::QuantKind::PerTensor;
  if (from.element() != to.element() || (!per_channel && from.quant() != to.quant()) ||
      perm->size() != static_cast<size_t>(from.rank()))
    return {};
  return {p->operand(0), std::move(*perm)};
}

using pass::has_elements;
using pass::moves_only_ones;
using pass::permuted_type;
using pass::recreate;

inline Value *make_transpose(pass::Rewriter &rw, ir::Op &before, Value *x,
                             std::span<const i64> perm) {
  ir::Builder b = rw.before(before);
  const std::vector<i32> p(perm.begin(), perm.end());
  Value *operands[] = {x, b.constant_i32(p)};
  const Type type = permuted_type(rw.context(), x->type(), perm);
  return b.create_typed(op::TRANSPOSE, operands, {}, std::span(&type, 1))->result();
}

/// RESHAPE to `type`, which has at most one symbolic dimension.
inline Value *make_reshape(ir::Builder &b, Value *x, Type type) {
  std::vector<i32> stated;
  SymDims attr;
  for (SymInt d : type.shape()) {
    stated.push_back(d.is_static() ? static_cast<i32>(d.value()) : -1);
    attr.push_back(stated.back());
  }
  Value *operands[] = {x, b.constant_i32(stated)};
  const NamedAttr new_shape{"new_shape", b.context().ints_attr(attr)};
  return b.create_typed(op::RESHAPE, operands, std::span(&new_shape, 1), std::span(&type, 1))
      ->result();
}
/// The same for the elements and quantization of `x`.
inline Value *make_reshape(pass::Rewriter &rw, ir::Op &before, Value *x,
                           std::span<const SymInt> shape) {
  ir::Builder b = rw.before(before);
  return make_reshape(b, x, rw.context().with_shape(x->type(), shape));
}

inline size_t count_symbolic(std::span<const SymInt> shape) {
  size_t n = 0;
  for (SymInt d : shape)
    n += d.is_symbolic();
  return n;
}

/// The slot of `fused_activation_function`, or -1.
inline int activation_slot(const ir::Op &op) {
  return op.def().attr_index("fused_activation_function");
}
inline bool has_activation(const ir::Op &op) {
  const int slot = activation_slot(op);
  return slot >= 0 && op.attr(static_cast<u32>(slot)).as_string() != "NONE";
}

} // namespace chute::circle

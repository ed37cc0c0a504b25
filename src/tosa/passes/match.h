#pragma once

#include "pass/constants.h"
#include "pass/rewriter.h"
#include "tosa/infer.h"
#include "tosa/ops.h"

#include <algorithm>
#include <optional>

/// What TOSA passes ask of operators. Internal to tosa/passes.
namespace chute::tosa {

using ir::Attr;
using ir::ElementType;
using ir::Op;
using ir::OpCode;
using ir::SymInt;
using ir::Type;
using ir::Value;
using pass::constant_of;
using pass::Dims;
using pass::is_identity;
using pass::Rewriter;
using pass::static_dims;
using pass::SymDims;

inline constexpr size_t kMostDims = 6; ///< MAX_RANK

inline i64 product_of(const Dims &dims) {
  i64 n = 1;
  for (i64 d : dims)
    n *= d;
  return n;
}

/// The patterns of tosa-simplify, for passes that make work for them.
void add_simplify_patterns(pass::PatternSet &set);
void add_rescale_patterns(pass::PatternSet &set); ///< part of them

/// The producer of `v` when it is that operator, else null.
inline Op *made_by(const Value *v, OpCode code) {
  Op *p = v ? v->producer() : nullptr;
  return p && p->opcode() == code ? p : nullptr;
}

/// A TRANSPOSE and its permutation.
struct Transposed {
  Value *source = nullptr; ///< null: it is none
  Dims perm;
  explicit operator bool() const { return source != nullptr; }
};

inline Transposed transposed(const Value *v) {
  const Op *p = made_by(v, op::TRANSPOSE);
  if (!p)
    return {};
  Transposed t{p->operand(0), {}};
  for (SymInt d : p->attr("perms").as_ints())
    t.perm.push_back(d.value());
  return t;
}

inline Value *make_transpose(Rewriter &rw, Op &before, Value *x, std::span<const i64> perm) {
  ir::Builder b = rw.before(before);
  const SymDims perms(perm.begin(), perm.end());
  const ir::NamedAttr attr{"perms", rw.context().ints_attr(perms)};
  const Type type = pass::permuted_type(rw.context(), x->type(), perm);
  return b.create_typed(op::TRANSPOSE, std::span(&x, 1), std::span(&attr, 1), std::span(&type, 1))
      ->result();
}

inline Value *make_shape(Rewriter &rw, Op &before, const Dims &dims) {
  return rw.before(before).constant_i64(dims);
}

/// RESHAPE to a static shape; a view when `x` is a constant, `x` itself when nothing changes.
inline Value *make_reshape(Rewriter &rw, Op &before, Value *x, const Dims &dims) {
  const SymDims shape(dims.begin(), dims.end());
  if (std::ranges::equal(x->type().shape(), shape))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return rw.before(before).constant(pass::reshaped(rw.graph(), *c, shape));
  Value *operands[] = {x, make_shape(rw, before, dims)};
  const Type type = rw.context().with_shape(x->type(), shape);
  return rw.before(before).create_typed(op::RESHAPE, operands, {}, std::span(&type, 1))->result();
}

/// Replaces a result by a value of the same shape, whose type becomes the result's own.
inline bool replace_by(Rewriter &rw, Op &op, Value *v) {
  if (v->producer() && !constant_of(v))
    rw.graph().set_type(v, op.result()->type());
  rw.replace(op, v);
  return true;
}

} // namespace chute::tosa

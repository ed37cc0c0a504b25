#pragma once

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernel.h"

namespace chute::eval {

/// A Python number as a rank-0 tensor: I64 or F64, so that promotion treats it like one.
inline Tensor scalar_operand(const KernelContext &ctx, std::string_view attr) {
  const Scalar s = ctx.scalar(attr);
  return s.is_int ? Tensor::scalar_int(ElementType::I64, s.integer)
                  : Tensor::scalar(ElementType::F64, s.real);
}

/// `v` rounded as an attribute of a float kernel is: to f32 where the kernel computes in f32.
template <class C>
C as_compute(const Scalar &s) {
  return s.is_int ? static_cast<C>(s.integer) : static_cast<C>(s.real);
}

} // namespace chute::eval

#pragma once

#include "eval/tensor.h"

namespace chute::eval {

/// The four types that arithmetic runs in. Narrow floats compute in f32 and are rounded once per
/// operator, as PyTorch does on a CPU; integers compute modulo 2^64 and are cut to their width when
/// stored, which is their own wraparound for +, -, * and bit operations. U64 apart, because
/// division and order differ from I64. Bool is 0 or 1 in I64.
enum class Compute : u8 { F32, F64, I64, U64 };

/// Element types with a compute type: Bool, integers, floats. Complex, MX and strings have none.
bool computable(ElementType t);
Compute compute_of(ElementType t);

/// Calls f(C{}) with the C++ type of the class: the one dispatch that kernels use.
template <class F>
decltype(auto) with_compute(Compute c, F &&f) {
  switch (c) {
  case Compute::F32: return f(float{});
  case Compute::F64: return f(double{});
  case Compute::U64: return f(u64{});
  default: return f(i64{});
  }
}

/// Whether elements of `t` are stored as C, so that no conversion is needed.
template <class C>
bool stored_as(ElementType t);

/// Converts `n` consecutive elements. C is float, double, i64 or u64. Floats become integers by
/// truncation (out of range: as ir::store_element), integers become floats rounded to nearest,
/// anything becomes Bool by "not zero".
template <class C>
void load_run(ElementType t, const std::byte *from, i64 n, C *to);
template <class C>
void store_run(ElementType t, const C *from, i64 n, std::byte *to);

/// `t` converted to another element type; the same tensor when it has it already. Both computable.
Tensor cast(const Tensor &t, ElementType element);

/// PyTorch's promotion of two tensor operands: by category, and within a category rank-0 tensors
/// yield to others. Only for operators whose operands were not cast beforehand.
ElementType promote(const Tensor &a, const Tensor &b);

} // namespace chute::eval

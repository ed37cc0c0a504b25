#pragma once

#include "support/function_ref.h"
#include "eval/tensor.h"

#include <array>
#include <span>
#include <vector>

namespace chute::eval {

/// Whether `from` broadcasts to `to` (PyTorch's rule: aligned at the right, extent 1 repeats).
bool broadcasts_to(std::span<const i64> from, std::span<const i64> to);

/// The common shape, or false when there is none.
bool broadcast_shape(std::span<const i64> a, std::span<const i64> b, Shape &out);

/// Computes `out` element by element from operands that broadcast to its shape.
/// `f(in, out, n)` gets n consecutive elements of each operand and sets n elements, all in the
/// compute type C (eval/convert.h). Blocks are computed in parallel; f must not depend on their
/// order. Returns false when an operand does not broadcast to the result.
template <class C>
bool map_elements(std::span<const Tensor *const> in, Tensor &out,
                  FunctionRef<void(const C *const *in, C *out, i64 n)> f);

} // namespace chute::eval

#pragma once

#include "eval/kernel.h"

namespace chute::eval {

/// The element type that a product of `t` runs in: F32 for the narrow floats, F32, F64, or U64 for
/// all integers. None when there is no product.
ElementType product_element(ElementType t);

/// torch.matmul for every rank: a [..., m, k] by b [..., k, n] with broadcast leading dims; rank 1
/// is a row on the left, a column on the right. `b_transposed`: b is [..., n, k] (rank >= 2). The
/// result has `element`; false when the shapes do not fit.
bool matmul(const Tensor &a, const Tensor &b, bool b_transposed, ElementType element, Tensor &out);

} // namespace chute::eval

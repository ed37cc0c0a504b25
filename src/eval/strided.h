#pragma once

#include "eval/tensor.h"

#include <span>

namespace chute::eval {

/// Copies a box of elements between two strided layouts: element i (over `shape`) goes from
/// src + sum(i * src_strides) to dst + sum(i * dst_strides), strides in elements of `item` bytes
/// (1, 2, 4, 8 or 16), possibly zero or negative in the source. Destinations are distinct.
/// The caller answers for the bounds.
void copy_strided(size_t item, std::span<const i64> shape, const std::byte *src,
                  std::span<const i64> src_strides, std::byte *dst,
                  std::span<const i64> dst_strides);

/// A dense tensor of `shape` whose elements lie at `offset` + strides in `t`.
Tensor gather_strided(const Tensor &t, Shape shape, i64 offset, std::span<const i64> strides);

/// Permuted dense copy (or the tensor itself for the identity).
Tensor permute(const Tensor &t, std::span<const i64> dims);

/// `dim` wrapped into [0, rank), with rank 0 taken as 1; -1 when out of range.
int wrap_dim(i64 dim, int rank);

} // namespace chute::eval

#pragma once

#include "eval/kernel.h"

namespace chute::eval {

/// x[i, j, …] with tensors as indices, taken apart: x permuted by `order` is a table of
/// `table_rows` rows (the indexed dims, merged) by `rest`; element b of the broadcast indices picks
/// row rows[b].
struct AdvancedIndex {
  std::vector<i64> order;
  i64 table_rows = 1;
  Shape rest;            ///< extents of the dims without index, in order
  Shape batch;           ///< broadcast shape of the indices
  std::vector<i64> rows; ///< one per element of `batch`
  size_t leading = 0;    ///< dims of `rest` that come before `batch` in the result

  Shape result_shape() const;
  /// Permutation from [batch…, rest…] to the result's dims.
  std::vector<i64> result_order() const;
};

/// Masks become positions, negative indices wrap, indices broadcast.
Status prepare_index(KernelContext &ctx, const Tensor &x, std::span<const Tensor *const> given,
                     AdvancedIndex &out);

} // namespace chute::eval

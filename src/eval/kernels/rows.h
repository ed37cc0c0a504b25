#pragma once

#include "eval/kernel.h"

namespace chute::eval {

/// A tensor seen as rows along some of its dims: those dims are moved last and merged, so that
/// every row is contiguous. Reductions, scans, sorts, softmax and norms work on rows, in parallel
/// over rows only (and over fixed pieces of very long ones), never splitting by thread.
struct Rows {
  Tensor data; ///< [count, length]
  i64 count = 0;
  i64 length = 0;
  Shape outer;            ///< extents of the dims that stay, in order
  std::vector<i64> order; ///< the permutation that made `data`: kept dims, then row dims
  Shape shape;            ///< the tensor's own shape
};

/// `dims` wrapped and without repetition; empty means all. False when one is out of range.
bool wrap_dims(std::vector<i64> &dims, int rank);

/// `dims` are wrapped, distinct, in any order; rows run through them in ascending order.
Rows rows_along(const Tensor &t, std::vector<i64> dims);

/// The inverse for a result with as many elements: [count, length] back to the tensor's dim order,
/// with `extent` (default: unchanged) elements along a single row dim.
Tensor from_rows(const Rows &rows, const Tensor &data, i64 extent = -1);

/// Shape of a reduction over `dims`.
Shape reduced_shape(const Shape &shape, const std::vector<i64> &dims, bool keepdim);

/// `grain` rows for parallel_for so that a piece is worth a task.
inline i64 row_grain(i64 length) { return 16384 / (length > 0 ? length : 1) + 1; }

/// Sum of n values in double, in pieces of a fixed size combined pairwise in order: the same bits
/// for any thread count, and an error far below one rounding of the result.
double sum_of(const double *v, i64 n);

} // namespace chute::eval

#pragma once

#include "eval/kernel.h"

namespace chute::eval {

/// Index values with negative ones wrapped. False when the tensor is not of integers or a value is
/// outside [-extent, extent).
bool load_indices(const Tensor &index, i64 extent, std::vector<i64> &out);

/// Rows of the first dim of `table` ([n, …]) at `rows`; the result is [rows.size(), …].
Tensor take_rows(const Tensor &table, const std::vector<i64> &rows);

/// Positions of the true elements of a mask, one vector per dim.
std::vector<std::vector<i64>> nonzero_positions(const Tensor &mask);

} // namespace chute::eval

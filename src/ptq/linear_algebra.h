#pragma once

#include "support/ints.h"

#include <vector>

namespace chute::ptq {

/// A square matrix in row-major order.
struct Square {
  i64 n = 0;
  std::vector<double> v;
  explicit Square(i64 size = 0) : n(size), v(static_cast<size_t>(size * size), 0.0) {}
  double &at(i64 i, i64 j) { return v[static_cast<size_t>(i * n + j)]; }
  double at(i64 i, i64 j) const { return v[static_cast<size_t>(i * n + j)]; }
  double *row(i64 i) { return v.data() + i * n; }
  const double *row(i64 i) const { return v.data() + i * n; }
};

/// Plain loops, so that the same numbers come out on every machine.
/// Lower Cholesky factor in place (the upper triangle is cleared); false when `a` is not positive
/// definite.
bool cholesky(Square &a);
/// Solves L L^T X = B for `columns` right sides, B row-major [n, columns], in place.
void solve(const Square &l, std::vector<double> &b, i64 columns);
/// The upper factor U with U^T U = (L L^T)^-1; false when it does not exist in f64.
bool inverse_factor(const Square &l, Square &u);

} // namespace chute::ptq

#include "ptq/linear_algebra.h"

#include <cmath>

namespace chute::ptq {

bool cholesky(Square &a) {
  for (i64 i = 0; i < a.n; ++i) {
    double *ri = a.row(i);
    for (i64 j = 0; j <= i; ++j) {
      const double *rj = a.row(j);
      double sum = ri[j];
      for (i64 k = 0; k < j; ++k)
        sum -= ri[k] * rj[k];
      if (i != j) {
        ri[j] = sum / rj[j];
      } else {
        if (!(sum > 0) || !std::isfinite(sum))
          return false;
        ri[i] = std::sqrt(sum);
      }
    }
    for (i64 j = i + 1; j < a.n; ++j)
      ri[j] = 0;
  }
  return true;
}

void solve(const Square &l, std::vector<double> &b, i64 columns) {
  const auto row = [&](i64 i) { return b.data() + i * columns; };
  for (i64 i = 0; i < l.n; ++i) {
    for (i64 k = 0; k < i; ++k)
      for (i64 c = 0; c < columns; ++c)
        row(i)[c] -= l.at(i, k) * row(k)[c];
    for (i64 c = 0; c < columns; ++c)
      row(i)[c] /= l.at(i, i);
  }
  for (i64 i = l.n; i-- > 0;) {
    for (i64 k = i + 1; k < l.n; ++k)
      for (i64 c = 0; c < columns; ++c)
        row(i)[c] -= l.at(k, i) * row(k)[c];
    for (i64 c = 0; c < columns; ++c)
      row(i)[c] /= l.at(i, i);
  }
}

bool inverse_factor(const Square &l, Square &u) {
  // The inverse, its lower factor, and that one's transpose.
  Square inverse(l.n);
  for (i64 i = 0; i < l.n; ++i)
    inverse.at(i, i) = 1;
  solve(l, inverse.v, l.n);
  if (!cholesky(inverse))
    return false;
  u = Square(l.n);
  for (i64 i = 0; i < l.n; ++i)
    for (i64 j = 0; j <= i; ++j)
      u.at(j, i) = inverse.at(i, j);
  return true;
}

} // namespace chute::ptq

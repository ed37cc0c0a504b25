#pragma once

#include "support/ints.h"

namespace chute::eval {

/// c[m, n] (+)= a[m, k] * b[k, n], row-major with leading dimensions; `b_transposed`: b is [n, k].
/// One thread; the order of additions depends on m, n, k alone (Eigen's cache sizes are pinned), so
/// cutting a product into the same tiles gives the same bits on every machine and thread count.
/// C is float, double or u64 (integers modulo 2^64).
template <class C>
void gemm(const C *a, i64 lda, const C *b, i64 ldb, bool b_transposed, C *c, i64 ldc, i64 m, i64 n,
          i64 k, bool accumulate);

} // namespace chute::eval

#include "eval/gemm.h"

#include <Eigen/Core>
#include <algorithm>

namespace chute::eval {

namespace {

/// Eigen chooses its blocking, and with it the order of additions, by the caches of the machine it
/// runs on. Fixed sizes make results a property of the program.
void pin_cache_sizes() {
  static const bool done = [] {
    Eigen::setCpuCacheSizes(32 * 1024, 256 * 1024, 2 * 1024 * 1024);
    return true;
  }();
  static_cast<void>(done);
}

} // namespace

template <class C>
void gemm(const C *a, i64 lda, const C *b, i64 ldb, bool b_transposed, C *c, i64 ldc, i64 m, i64 n,
          i64 k, bool accumulate) {
  pin_cache_sizes();
  using Row = Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Column = Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
  using Stride = Eigen::OuterStride<>;
  Eigen::Map<const Row, 0, Stride> ma(a, m, k, Stride(lda));
  Eigen::Map<Row, 0, Stride> mc(c, m, n, Stride(ldc));
  if (k == 0) {
    if (!accumulate)
      mc.setZero();
    return;
  }
  if (b_transposed) {
    Eigen::Map<const Column, 0, Stride> mb(b, k, n, Stride(ldb));
    if (accumulate)
      mc.noalias() += ma * mb;
    else
      mc.noalias() = ma * mb;
  } else {
    Eigen::Map<const Row, 0, Stride> mb(b, k, n, Stride(ldb));
    if (accumulate)
      mc.noalias() += ma * mb;
    else
      mc.noalias() = ma * mb;
  }
}

/// Unsigned, so that overflow wraps; integers are too rare here to deserve Eigen's machinery.
template <>
void gemm<u64>(const u64 *a, i64 lda, const u64 *b, i64 ldb, bool b_transposed, u64 *c, i64 ldc,
               i64 m, i64 n, i64 k, bool accumulate) {
  for (i64 i = 0; i < m; ++i) {
    if (!accumulate)
      std::fill(c + i * ldc, c + i * ldc + n, 0);
    for (i64 p = 0; p < k; ++p) {
      const u64 v = a[i * lda + p];
      for (i64 j = 0; j < n; ++j)
        c[i * ldc + j] += v * (b_transposed ? b[j * ldb + p] : b[p * ldb + j]);
    }
  }
}

template void gemm<float>(const float *, i64, const float *, i64, bool, float *, i64, i64, i64, i64,
                          bool);
template void gemm<double>(const double *, i64, const double *, i64, bool, double *, i64, i64, i64,
                           i64, bool);

} // namespace chute::eval

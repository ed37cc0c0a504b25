#include "eval/kernels/families.h"

namespace chute::eval {

std::vector<std::span<const KernelEntry>> all_families() {
  return {
      unary_kernels(),   binary_kernels(), ternary_kernels(), view_kernels(),
      strided_kernels(), join_kernels(),   matmul_kernels(),  conv_kernels(),
  };
}

} // namespace chute::eval

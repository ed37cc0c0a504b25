#include "eval/kernels/families.h"

namespace chute::eval {

std::vector<std::span<const KernelEntry>> all_families() {
  return {
      unary_kernels(),
      binary_kernels(),
      ternary_kernels(),
      view_kernels(),
      strided_kernels(),
      join_kernels(),
      index_kernels(),
      scatter_kernels(),
      reduce_kernels(),
      scan_kernels(),
      matmul_kernels(),
      conv_kernels(),
      pool_kernels(),
      norm_kernels(),
      resize_kernels(),
      create_kernels(),
      quantize_kernels(),
      attention_kernels(),
      circle_movement_kernels(),
      circle_nn_kernels(),
      circle_quantize_kernels(),
      circle_block_kernels(),
      circle_index_kernels(),
      circle_norm_kernels(),
      circle_sequence_kernels(),
      tosa_kernels(),
      tosa_nn_kernels(),
  };
}

} // namespace chute::eval

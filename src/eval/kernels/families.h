#pragma once

#include "eval/kernel.h"

namespace chute::eval {

/// The kernel lists, one per file of this folder. Called by name so that a static library keeps
/// them.
std::span<const KernelEntry> unary_kernels();
std::span<const KernelEntry> binary_kernels();
std::span<const KernelEntry> ternary_kernels();
std::span<const KernelEntry> view_kernels();
std::span<const KernelEntry> strided_kernels();
std::span<const KernelEntry> join_kernels();
std::span<const KernelEntry> index_kernels();
std::span<const KernelEntry> scatter_kernels();
std::span<const KernelEntry> reduce_kernels();
std::span<const KernelEntry> scan_kernels();
std::span<const KernelEntry> matmul_kernels();
std::span<const KernelEntry> conv_kernels();
std::span<const KernelEntry> pool_kernels();
std::span<const KernelEntry> norm_kernels();
std::span<const KernelEntry> resize_kernels();
std::span<const KernelEntry> create_kernels();
std::span<const KernelEntry> quantize_kernels();
std::span<const KernelEntry> attention_kernels();
std::span<const KernelEntry> circle_movement_kernels();
std::span<const KernelEntry> circle_nn_kernels();
std::span<const KernelEntry> circle_quantize_kernels();
std::span<const KernelEntry> circle_block_kernels();
std::span<const KernelEntry> circle_index_kernels();
std::span<const KernelEntry> circle_norm_kernels();
std::span<const KernelEntry> circle_sequence_kernels();
std::span<const KernelEntry> tosa_kernels();
std::span<const KernelEntry> tosa_nn_kernels();

std::vector<std::span<const KernelEntry>> all_families();

} // namespace chute::eval

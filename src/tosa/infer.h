#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"

#include <vector>

/// Result types of the TOSA dialect; named by the rows of tosa/table/*.def.
///
/// An operand or attribute that the operator's definition rules out is an error with code
/// `tosa.infer.contract`; `tosa.infer.unknown` says that no rule knows the type.
namespace chute::tosa {

inline constexpr const char *kContractCode = "tosa.infer.contract";
inline constexpr const char *kUnknownCode = "tosa.infer.unknown";

#define TOSA_INFER(name)                                                                           \
  Status name(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out);
TOSA_INFER(infer_unset)
TOSA_INFER(infer_nothing)
TOSA_INFER(infer_unary)
TOSA_INFER(infer_binary)
TOSA_INFER(infer_mul)
TOSA_INFER(infer_compare)
TOSA_INFER(infer_select)
TOSA_INFER(infer_table)
TOSA_INFER(infer_reduce)
TOSA_INFER(infer_argmax)
TOSA_INFER(infer_concat)
TOSA_INFER(infer_pad)
TOSA_INFER(infer_reshape)
TOSA_INFER(infer_slice)
TOSA_INFER(infer_tile)
TOSA_INFER(infer_transpose)
TOSA_INFER(infer_gather)
TOSA_INFER(infer_dim)
TOSA_INFER(infer_concat_shape)
TOSA_INFER(infer_conv2d)
TOSA_INFER(infer_conv3d)
TOSA_INFER(infer_depthwise)
TOSA_INFER(infer_transpose_conv)
TOSA_INFER(infer_pool)
TOSA_INFER(infer_matmul)
TOSA_INFER(infer_matmul_t)
TOSA_INFER(infer_conv2d_block_scaled)
TOSA_INFER(infer_resize)
TOSA_INFER(infer_fft2d)
TOSA_INFER(infer_rfft2d)
#undef TOSA_INFER

/// The elements of a small integer constant (a shape), or nothing.
std::optional<std::vector<i64>> constant_ints(const ir::Value *v);

} // namespace chute::tosa

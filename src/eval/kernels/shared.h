#pragma once

#include "eval/kernel.h"

/// Parts of kernels that the dialects share.
namespace chute::eval {

// strided.cpp
/// Elements start, start + step, … (count of them) of one dim; `keep` false drops the dim.
Tensor slice(const Tensor &x, int dim, i64 start, i64 step, i64 count, bool keep = true);
/// `x` cut along `dim` into the results, whose declared extents say where.
Status split_along(KernelContext &ctx, const Tensor &x, int dim);

// join.cpp
/// Sets result 0. The pieces share all extents but that of `dim`.
Status concatenate(KernelContext &ctx, const std::vector<Tensor> &pieces, int dim);
enum class PadMode : u8 { Constant, Reflect, Symmetric, Replicate, Circular };
/// Pads operand 0 into result 0. `pad`: (before, after) from the last dim backwards; negative
/// crops.
Status pad_tensor(KernelContext &ctx, const std::vector<i64> &pad, PadMode mode, double value);

// conv.cpp
struct ConvSettings {
  std::vector<i64> stride;
  std::vector<i64> padding;
  std::vector<i64> padding_end; ///< differs from padding for SAME only
  std::vector<i64> dilation;
  std::vector<i64> output_padding;
  bool transposed = false;
  i64 groups = 1;
};
/// x [N, C, spatial…] (the batch may be missing) by w [out, in / groups, kernel…], for a transposed
/// one [in, out / groups, kernel…].
Status convolve(const KernelContext &ctx, ConvSettings s, Tensor x, Tensor w, const Tensor *bias,
                ElementType element, Tensor &out);

// circle.cpp
/// Whether the operator is Circle's: shapes and axes are operands, layouts are NHWC.
bool is_circle(const KernelContext &ctx);
/// Applies `fused_activation_function`, if the operator has one, to result 0.
Status activate(KernelContext &ctx);
/// An integer tensor's values.
std::vector<i64> values_of(const Tensor &t);
/// Channels-last to channels-first and back.
Tensor to_nchw(const Tensor &t);
Tensor to_nhwc(const Tensor &t);
/// Begin and end padding of one dim under Circle's SAME (false: VALID) rule.
void same_padding(i64 in, i64 out, i64 kernel, i64 stride, i64 dilation, bool same, i64 &begin,
                  i64 &end);

} // namespace chute::eval

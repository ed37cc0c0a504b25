#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"

#include <vector>

/// Result types of ATen operators, recomputed from operands and attributes by PyTorch's rules
/// (broadcasting, type promotion, shape arithmetic over symbolic dimensions). Each rule serves a
/// family of rows in aten/table/*.def, which name it as `infer<rule::linear>`.
///
/// A rule never reads result types and never fails silently: operands that do not fit, sizes known
/// only at run time (nonzero, boolean masks) and dtype combinations that PyTorch refuses are errors
/// with the codes aten.infer.{operand, shape, dim, dtype, attr, data_dependent, none}.
namespace chute::aten {

class InferArgs;
using InferRule = Status (*)(InferArgs &);

Status run_rule(InferRule rule, const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out);

template <InferRule Rule>
Status infer(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return run_rule(Rule, op, graph, out);
}

/// For operators whose result types only the importer knows: creating one without given types is an
/// error that says so.
Status infer_unset(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out);

namespace rule {

// infer/algebra.cpp
Status determinant(InferArgs &a);
Status determinant_pair(InferArgs &a);
Status square_matrix(InferArgs &a);
Status solve(InferArgs &a);
Status cross(InferArgs &a);
Status cdist(InferArgs &a);
Status pdist(InferArgs &a);
Status pairwise_distance(InferArgs &a);
Status cosine_similarity(InferArgs &a);
Status diff(InferArgs &a);
Status gradient(InferArgs &a);
Status vander(InferArgs &a);
Status multinomial(InferArgs &a);
Status rfft(InferArgs &a);
Status rfftn(InferArgs &a);
Status fft_r2c(InferArgs &a);
Status fft_c2r(InferArgs &a);
Status stft(InferArgs &a);

// infer/contraction.cpp
Status mm(InferArgs &a);
Status int_mm(InferArgs &a);
Status bmm(InferArgs &a);
Status matmul(InferArgs &a);
Status linear(InferArgs &a);
Status addmm(InferArgs &a);
Status baddbmm(InferArgs &a);
Status addbmm(InferArgs &a);
Status addmv(InferArgs &a);
Status mv(InferArgs &a);
Status dot(InferArgs &a);
Status outer(InferArgs &a);
Status addr(InferArgs &a);
Status inner(InferArgs &a);
Status kron(InferArgs &a);
Status chain_matmul(InferArgs &a);
Status tensordot(InferArgs &a);
Status bilinear(InferArgs &a);
Status trilinear(InferArgs &a);
Status einsum(InferArgs &a);
Status attention(InferArgs &a);
Status attention_math(InferArgs &a);
Status attention_flash(InferArgs &a);
Status multi_head_attention(InferArgs &a);

// infer/composite.cpp
Status distance(InferArgs &a);
Status membership(InferArgs &a);
Status log_sigmoid_pair(InferArgs &a);
Status class_loss_pair(InferArgs &a);
Status row_loss(InferArgs &a);
Status vector_dot(InferArgs &a);
Status matrix_norm(InferArgs &a);

// infer/convolution.cpp
Status convolution(InferArgs &a);
Status conv_transpose(InferArgs &a);
Status conv_padding(InferArgs &a);
Status conv_tbc(InferArgs &a);
Status pool(InferArgs &a);
Status pool_indices(InferArgs &a);
Status adaptive_pool(InferArgs &a);
Status adaptive_pool_indices(InferArgs &a);
Status unpool(InferArgs &a);
Status im2col(InferArgs &a);
Status col2im(InferArgs &a);

// infer/creation.cpp
Status full(InferArgs &a);
Status zeros(InferArgs &a);
Status new_sized(InferArgs &a);
Status randint(InferArgs &a);
Status resize(InferArgs &a);
Status like(InferArgs &a);
Status cast_like(InferArgs &a);
Status prim_dtype(InferArgs &a);
Status arange(InferArgs &a);
Status eye(InferArgs &a);
Status linspace(InferArgs &a);
Status scalar_tensor(InferArgs &a);
Status randperm(InferArgs &a);
Status triangle_indices(InferArgs &a);
Status window(InferArgs &a);
Status shape_as_tensor(InferArgs &a);

// infer/elementwise.cpp
Status same(InferArgs &a);
Status elementwise_out(InferArgs &a);
Status elementwise(InferArgs &a);
Status div_mode(InferArgs &a);
Status float_power(InferArgs &a);
Status where(InferArgs &a);
Status data_dependent_indices(InferArgs &a);
Status masked_fill(InferArgs &a);
Status magnitude(InferArgs &a);
Status angle(InferArgs &a);
Status square(InferArgs &a);
Status make_complex(InferArgs &a);
Status view_as_complex(InferArgs &a);
Status view_as_real(InferArgs &a);
Status real_part(InferArgs &a);
Status with_mask(InferArgs &a);
Status loss(InferArgs &a);
Status class_loss(InferArgs &a);
Status nll_loss_forward(InferArgs &a);
Status rrelu_noise(InferArgs &a);
Status bool_value(InferArgs &a);
Status int_value(InferArgs &a);
Status item(InferArgs &a);
Status check(InferArgs &a);

// infer/indexing.cpp
Status index(InferArgs &a);
Status gather(InferArgs &a);
Status index_select(InferArgs &a);
Status write_dim(InferArgs &a);
Status take(InferArgs &a);
Status take_along(InferArgs &a);
Status embedding(InferArgs &a);
Status embedding_bag(InferArgs &a);
Status one_hot(InferArgs &a);

// infer/joining.cpp
Status cat(InferArgs &a);
Status stack(InferArgs &a);
Status hstack(InferArgs &a);
Status vstack(InferArgs &a);
Status dstack(InferArgs &a);
Status column_stack(InferArgs &a);
Status block_diag(InferArgs &a);
Status cartesian_prod(InferArgs &a);
Status combinations(InferArgs &a);
Status broadcast_tensors(InferArgs &a);
Status meshgrid(InferArgs &a);
Status pad(InferArgs &a);
Status padding(InferArgs &a);
Status repeat(InferArgs &a);
Status repeat_interleave(InferArgs &a);
Status repeat_interleave_tensor(InferArgs &a);

// infer/norm.cpp
Status layer_norm(InferArgs &a);
Status native_layer_norm(InferArgs &a);
Status fused_rms_norm(InferArgs &a);
Status native_group_norm(InferArgs &a);
Status batch_norm_stats(InferArgs &a);
Status batch_norm_no_stats(InferArgs &a);
Status batch_norm_no_training(InferArgs &a);
Status batch_norm_functional(InferArgs &a);
Status cudnn_batch_norm(InferArgs &a);
Status weight_norm(InferArgs &a);
Status softmax(InferArgs &a);
Status glu(InferArgs &a);

// infer/permute.cpp
Status permute(InferArgs &a);
Status transpose(InferArgs &a);
Status swapaxes(InferArgs &a);
Status t(InferArgs &a);
Status matrix_transpose(InferArgs &a);
Status reverse_dims(InferArgs &a);
Status movedim(InferArgs &a);
Status rot90(InferArgs &a);

// infer/quantized.cpp
Status quantize(InferArgs &a);
Status dequantize(InferArgs &a);
Status choose_qparams(InferArgs &a);
Status choose_qparams_per_token(InferArgs &a);
Status affine_qparams(InferArgs &a);
Status nhwc_conv2d(InferArgs &a);
Status nhwc_depthwise_conv2d(InferArgs &a);
Status nhwc_transpose_conv(InferArgs &a);
Status nhwc_pool(InferArgs &a);
Status mxfp_conv2d(InferArgs &a);
Status mxfp_linear(InferArgs &a);
Status nhwc_resize(InferArgs &a);
Status shape_vector(InferArgs &a);
Status gather_nd(InferArgs &a);

// infer/recurrent.cpp
Status rnn_layer(InferArgs &a);
Status lstm_layer(InferArgs &a);
Status rnn_cell(InferArgs &a);
Status lstm_cell(InferArgs &a);

// infer/reduction.cpp
Status sum(InferArgs &a);
Status nan_sum(InferArgs &a);
Status nan_mean(InferArgs &a);
Status mean(InferArgs &a);
Status reduce_same(InferArgs &a);
Status reduce_same_pair(InferArgs &a);
Status reduce_bool(InferArgs &a);
Status reduce_index(InferArgs &a);
Status reduce_with_indices(InferArgs &a);
Status reduce_float(InferArgs &a);
Status variance(InferArgs &a);
Status variance_mean(InferArgs &a);
Status vector_norm(InferArgs &a);
Status trace(InferArgs &a);
Status trapezoid(InferArgs &a);
Status cumulative(InferArgs &a);
Status cumulative_same(InferArgs &a);
Status cumulative_indices(InferArgs &a);
Status argsort(InferArgs &a);
Status topk(InferArgs &a);
Status kth_value(InferArgs &a);
Status bucketize(InferArgs &a);
Status histogram(InferArgs &a);
Status unknown_count(InferArgs &a);

// infer/resample.cpp
Status upsample(InferArgs &a);
Status grid_sampler(InferArgs &a);
Status affine_grid(InferArgs &a);

// infer/slicing.cpp
Status slice(InferArgs &a);
Status narrow(InferArgs &a);
Status select(InferArgs &a);
Status split(InferArgs &a);
Status split_sizes(InferArgs &a);
Status chunk(InferArgs &a);
Status unbind(InferArgs &a);
Status tensor_split(InferArgs &a);
Status tensor_split_indices(InferArgs &a);
Status hsplit(InferArgs &a);
Status vsplit(InferArgs &a);
Status dsplit(InferArgs &a);
Status diagonal(InferArgs &a);
Status diag(InferArgs &a);
Status diag_embed(InferArgs &a);
Status unfold(InferArgs &a);

// infer/views.cpp
Status view(InferArgs &a);
Status reshape(InferArgs &a);
Status view_as_other(InferArgs &a);
Status expand(InferArgs &a);
Status expand_as(InferArgs &a);
Status strided(InferArgs &a);
Status flatten(InferArgs &a);
Status ravel(InferArgs &a);
Status unflatten(InferArgs &a);
Status squeeze(InferArgs &a);
Status unsqueeze(InferArgs &a);
Status atleast(InferArgs &a);
Status view_dtype(InferArgs &a);
Status pixel_shuffle(InferArgs &a);
Status pixel_unshuffle(InferArgs &a);

} // namespace rule

} // namespace chute::aten

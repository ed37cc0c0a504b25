// Products and convolutions of the Circle dialect, by way of the channels-first kernels.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/matmul.h"
#include "eval/kernels/shared.h"
#include "eval/quantized.h"
#include "eval/strided.h"

#include <algorithm>

namespace chute::eval {

namespace {

Status finish(KernelContext &ctx, Tensor out) {
  ctx.set(0, std::move(out));
  return activate(ctx);
}

/// x w^T with weights as they are stored, dequantized a tile of rows at a time.
Status tiled_product(KernelContext &ctx, const Tensor &x, const Tensor &w, Tensor &out) {
  const ir::Quantization *q = ctx.op().arg(1)->type().quant();
  EVAL_REQUIRE(q && x.element() == ElementType::F32, "operand and weights do not fit");
  const i64 units = w.dim(0);
  const i64 tile = std::max<i64>(1, (i64{1} << 20) / w.dim(1));
  out = Tensor::allocate(ElementType::F32, {x.dim(0), units});
  for (i64 first = 0; first < units; first += tile) {
    const i64 n = std::min(tile, units - first);
    const Result<Tensor> part = dequantize_rows(w, *q, first, n);
    if (!part)
      return tl::unexpected(part.error());
    Tensor p;
    EVAL_REQUIRE(matmul(x, *part, true, ElementType::F32, p), "operand and weights do not fit");
    const i64 from[] = {n, 1};
    const i64 to[] = {units, 1};
    if (x.dim(0))
      copy_strided(p.item_bytes(), p.shape(), p.data(), from,
                   out.mutable_data() + static_cast<size_t>(first) * out.item_bytes(), to);
  }
  return {};
}

/// The operand as rows of the weights' depth; the result has the declared shape (keep_num_dims).
Status k_fully_connected(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &w = ctx.in(1);
  const ElementType element = ctx.type().element;
  const ElementType wide = product_element(element);
  EVAL_REQUIRE(w.rank() == 2 && w.dim(1) > 0 && x.num_elements() % w.dim(1) == 0 &&
                   wide != ElementType::None && ctx.type().known(),
               "operand and weights do not fit");
  Tensor p;
  const Tensor rows = x.reshaped({x.num_elements() / w.dim(1), w.dim(1)});
  if (ir::is_integer(w.element()) && ir::is_float(element))
    if (Status s = tiled_product(ctx, rows, w, p); !s)
      return s;
  EVAL_REQUIRE((p.defined() || matmul(rows, w, true, wide, p)) &&
                   num_elements(ctx.type().shape) == p.num_elements(),
               "operand and weights do not fit");
  if (ctx.has(2)) {
    EVAL_REQUIRE(ctx.in(2).num_elements() == w.dim(0) && computable(ctx.in(2).element()),
                 "the bias has another length than the weights");
    const Tensor bias = ctx.in(2).reshaped({w.dim(0)});
    const Tensor *in[] = {&p, &bias};
    Tensor sum = Tensor::allocate(wide, p.shape());
    with_compute(compute_of(wide), [&](auto zero) {
      using C = decltype(zero);
      map_elements<C>(in, sum, [](const C *const *a, C *o, i64 n) {
        for (i64 i = 0; i < n; ++i)
          o[i] = a[0][i] + a[1][i];
      });
    });
    p = sum;
  }
  return finish(ctx, cast(p, element).reshaped(ctx.type().shape));
}

Tensor swap_last(const Tensor &t) {
  std::vector<i64> dims;
  for (int d = 0; d < t.rank(); ++d)
    dims.push_back(d);
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return permute(t, dims);
}
Status k_batch_matmul(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &y = ctx.in(1);
  EVAL_REQUIRE(x.rank() >= 2 && y.rank() >= 2, "needs matrices");
  Tensor out;
  EVAL_REQUIRE(matmul(ctx.boolean("adjoint_lhs") ? swap_last(x) : x, y, ctx.boolean("adjoint_rhs"),
                      ctx.type().element, out),
               "the operands' shapes do not fit");
  return finish(ctx, std::move(out));
}

Status padding_mode(const KernelContext &ctx, bool &same) {
  const std::string_view mode = ctx.text("padding");
  EVAL_REQUIRE(mode == "SAME" || mode == "VALID", "unknown padding");
  same = mode == "SAME";
  return {};
}

/// Strides, dilations and padding of a convolution over NHWC for kernel extents kh, kw.
Status settings(KernelContext &ctx, const Tensor &x, i64 kh, i64 kw, ConvSettings &s) {
  bool same = false;
  if (Status status = padding_mode(ctx, same); !status)
    return status;
  EVAL_REQUIRE(x.rank() == 4, "the operand is not of rank 4");
  s.stride = {ctx.integer("stride_h"), ctx.integer("stride_w")};
  s.dilation = {ctx.integer_or("dilation_h_factor", 1), ctx.integer_or("dilation_w_factor", 1)};
  const i64 kernel[2] = {kh, kw};
  for (size_t d = 0; d < 2; ++d) {
    EVAL_REQUIRE(s.stride[d] > 0 && s.dilation[d] > 0 && s.stride[d] < (i64{1} << 31) &&
                     s.dilation[d] < (i64{1} << 31),
                 "stride or dilation out of range");
    const i64 in = x.dim(static_cast<int>(d) + 1);
    i64 begin = 0;
    i64 end = 0;
    same_padding(in, (in + s.stride[d] - 1) / s.stride[d], kernel[d], s.stride[d], s.dilation[d],
                 same, begin, end);
    s.padding.push_back(begin);
    s.padding_end.push_back(end);
  }
  return {};
}

Status run(KernelContext &ctx, ConvSettings s, const Tensor &x, const Tensor &w,
           const Tensor *bias) {
  Tensor out;
  if (Status status = convolve(ctx, std::move(s), to_nchw(x), w, bias, ctx.type().element, out);
      !status)
    return status;
  return finish(ctx, to_nhwc(out));
}
Status k_conv_2d(KernelContext &ctx) { // filter [out, kh, kw, in / groups]
  const Tensor &x = ctx.in(0);
  const Tensor &w = ctx.in(1);
  ConvSettings s;
  EVAL_REQUIRE(w.rank() == 4 && w.dim(3) > 0, "the filter is not of rank 4");
  if (Status status = settings(ctx, x, w.dim(1), w.dim(2), s); !status)
    return status;
  s.groups = x.dim(3) / w.dim(3);
  return run(ctx, std::move(s), x, to_nchw(w), ctx.maybe(2));
}
Status k_depthwise_conv_2d(KernelContext &ctx) { // filter [1, kh, kw, in * multiplier]
  const Tensor &x = ctx.in(0);
  const Tensor &w = ctx.in(1);
  ConvSettings s;
  EVAL_REQUIRE(w.rank() == 4 && w.dim(0) == 1, "the filter is not of rank 4");
  if (Status status = settings(ctx, x, w.dim(1), w.dim(2), s); !status)
    return status;
  s.groups = x.dim(3);
  const std::vector<i64> dims{3, 0, 1, 2};
  return run(ctx, std::move(s), x, permute(w, dims), ctx.maybe(2));
}
Status k_transpose_conv(KernelContext &ctx) { // (output_shape, filter [out, kh, kw, in], x, bias)
  const std::vector<i64> shape = values_of(ctx.in(0));
  const Tensor &w = ctx.in(1);
  const Tensor &x = ctx.in(2);
  bool same = false;
  if (Status status = padding_mode(ctx, same); !status)
    return status;
  EVAL_REQUIRE(shape.size() == 4 && w.rank() == 4 && x.rank() == 4, "an operand is not of rank 4");
  ConvSettings s;
  s.transposed = true;
  s.stride = {ctx.integer("stride_h"), ctx.integer("stride_w")};
  s.dilation = {1, 1};
  for (size_t d = 0; d < 2; ++d) {
    const int i = static_cast<int>(d) + 1;
    EVAL_REQUIRE(s.stride[d] > 0 && s.stride[d] < (i64{1} << 31), "stride out of range");
    // The padding is that of the convolution whose adjoint this is: from the result to x.
    i64 begin = 0;
    i64 end = 0;
    same_padding(shape[d + 1], x.dim(i), w.dim(i), s.stride[d], 1, same, begin, end);
    const i64 whole = (x.dim(i) - 1) * s.stride[d] + w.dim(i);
    s.padding.push_back(begin);
    // Whatever the declared size asks for beyond begin is cut off or added at the end.
    const i64 rest = whole - begin - shape[d + 1];
    s.padding_end.push_back(std::max<i64>(rest, 0));
    s.output_padding.push_back(std::max<i64>(-rest, 0));
  }
  const std::vector<i64> dims{3, 0, 1, 2};
  return run(ctx, std::move(s), x, permute(w, dims), ctx.maybe(3));
}

constexpr KernelEntry kEntries[] = {
    {"circle.fully_connected", k_fully_connected},
    {"circle.batch_matmul", k_batch_matmul},
    {"circle.conv_2d", k_conv_2d},
    {"circle.depthwise_conv_2d", k_depthwise_conv_2d},
    {"circle.transpose_conv", k_transpose_conv},
};

} // namespace

std::span<const KernelEntry> circle_nn_kernels() { return kEntries; }

} // namespace chute::eval

// Convolutions of one to three spatial dims, grouped, dilated, strided, transposed: each output
// tile is a matrix product of the weight with a gathered matrix of input elements (im2col). A
// transposed convolution gathers too: output position o takes input i = (o + pad - k * dilation) /
// stride where that is whole, so no two tiles write the same element and results do not depend on
// threads.

#include "eval/convert.h"
#include "eval/gemm.h"
#include "eval/kernels/families.h"
#include "eval/kernels/matmul.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"
#include "eval/strided.h"

#include <algorithm>
#include <cstring>

namespace chute::eval {

namespace {

struct Geometry {
  i64 batch = 0;
  i64 in_channels = 0;
  i64 out_channels = 0;
  i64 groups = 1;
  Shape in; // spatial extents
  Shape kernel;
  Shape out;
  /// For each spatial dim: input index of (output o, kernel k) at [o * kernel + k], or -1.
  std::vector<std::vector<i64>> source;
  i64 in_size() const { return num_elements(in); }
  i64 kernel_size() const { return num_elements(kernel); }
  i64 out_size() const { return num_elements(out); }
};

/// Fills rows (channel, kernel position) by columns (output positions [first, first + count)).
template <class C>
void gather_columns(const Geometry &g, const C *x, i64 channels, i64 first, i64 count, C *matrix) {
  const size_t rank = g.in.size();
  const i64 kernel_size = g.kernel_size();
  const i64 in_size = g.in_size();
  std::vector<i64> offsets(static_cast<size_t>(count));
  for (i64 k = 0; k < kernel_size; ++k) {
    Shape kernel_index(rank);
    i64 rest = k;
    for (size_t d = rank; d-- > 0;) {
      kernel_index[d] = rest % g.kernel[d];
      rest /= g.kernel[d];
    }
    for (i64 j = 0; j < count; ++j) {
      i64 o = first + j;
      i64 offset = 0;
      i64 stride = 1;
      for (size_t d = rank; d-- > 0;) {
        const i64 at =
            g.source[d][static_cast<size_t>(o % g.out[d] * g.kernel[d] + kernel_index[d])];
        o /= g.out[d];
        if (at < 0) {
          offset = -1;
          break;
        }
        offset += at * stride;
        stride *= g.in[d];
      }
      offsets[static_cast<size_t>(j)] = offset;
    }
    for (i64 c = 0; c < channels; ++c) {
      const C *plane = x + c * in_size;
      C *row = matrix + (c * kernel_size + k) * count;
      for (i64 j = 0; j < count; ++j) {
        const i64 at = offsets[static_cast<size_t>(j)];
        row[j] = at < 0 ? C{0} : plane[at];
      }
    }
  }
}

/// `weight` is [groups * out channels per group, in channels per group, kernel…], `out` zero or
/// bias.
template <class C>
void run_tiles(const Geometry &g, const Tensor &x, const Tensor &weight, const Tensor *bias,
               Tensor &out) {
  const i64 ci = g.in_channels / g.groups;
  const i64 co = g.out_channels / g.groups;
  const i64 depth = ci * g.kernel_size();
  const i64 positions = g.out_size();
  // The gathered matrix stays in the second-level cache; the size depends on the problem alone.
  const i64 tile = std::clamp<i64>(65536 / std::max<i64>(depth, 1), 32, 2048);
  const i64 tiles = (positions + tile - 1) / tile;
  parallel_for(g.batch * g.groups * tiles, 1, [&](i64 begin, i64 end) {
    std::vector<C> matrix;
    for (i64 t = begin; t < end; ++t) {
      const i64 first = t % tiles * tile;
      const i64 count = std::min(tile, positions - first);
      const i64 group = t / tiles % g.groups;
      const i64 n = t / tiles / g.groups;
      matrix.resize(static_cast<size_t>(depth * count));
      gather_columns(g, x.as<C>() + (n * g.in_channels + group * ci) * g.in_size(), ci, first,
                     count, matrix.data());
      C *to = out.mutable_as<C>() + (n * g.out_channels + group * co) * positions + first;
      if (bias)
        for (i64 c = 0; c < co; ++c)
          std::fill(to + c * positions, to + c * positions + count, bias->as<C>()[group * co + c]);
      gemm<C>(weight.as<C>() + group * co * depth, depth, matrix.data(), count, false, to,
              positions, co, count, depth, bias != nullptr);
    }
  });
}

/// [in, out / groups, kernel…] to [out, in / groups, kernel…].
Tensor transposed_weight(const Tensor &w, i64 groups) {
  const i64 in = w.dim(0);
  const i64 co = w.dim(1);
  const i64 kernel = num_elements(std::span(w.shape()).subspan(2));
  const Tensor split = w.reshaped({groups, in / groups, co, kernel});
  Shape shape = w.shape();
  shape[0] = co * groups;
  shape[1] = in / groups;
  return permute(split, std::vector<i64>{0, 2, 1, 3}).reshaped(shape);
}

} // namespace

Status convolve(const KernelContext &ctx, ConvSettings s, Tensor x, Tensor w,
                const Tensor *given_bias, ElementType element, Tensor &result) {
  const int rank = w.rank() - 2;
  EVAL_REQUIRE(rank >= 1 && rank <= 3 && (x.rank() == w.rank() || x.rank() == w.rank() - 1),
               "needs one to three spatial dims");
  const bool batched = x.rank() == w.rank();
  if (!batched) {
    Shape shape = x.shape();
    shape.insert(shape.begin(), 1);
    x = x.reshaped(shape);
  }
  for (std::vector<i64> *list :
       {&s.stride, &s.padding, &s.padding_end, &s.dilation, &s.output_padding}) {
    if (list->empty())
      list->push_back(list == &s.stride || list == &s.dilation ? 1 : 0);
    if (list->size() == 1)
      list->resize(static_cast<size_t>(rank), list->front());
    EVAL_REQUIRE(list->size() == static_cast<size_t>(rank),
                 "stride, padding or dilation has another length than the spatial dims");
  }
  Geometry g;
  g.groups = s.groups;
  g.batch = x.dim(0);
  g.in_channels = x.dim(1);
  EVAL_REQUIRE(g.groups > 0 && g.in_channels % g.groups == 0,
               "groups does not divide the channels");
  if (s.transposed) {
    EVAL_REQUIRE(w.dim(0) == g.in_channels, "weight and input have different channels");
    w = transposed_weight(w, g.groups);
  } else {
    EVAL_REQUIRE(w.dim(1) == g.in_channels / g.groups && w.dim(0) % g.groups == 0,
                 "weight and input have different channels");
  }
  g.out_channels = w.dim(0);
  g.source.resize(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const i64 in = x.dim(i + 2);
    const i64 kernel = w.dim(i + 2);
    const i64 stride = s.stride[d];
    const i64 dilation = s.dilation[d];
    const i64 pad = s.padding[d];
    constexpr i64 kLimit = i64{1} << 31;
    EVAL_REQUIRE(stride > 0 && dilation > 0 && kernel > 0 && stride < kLimit && dilation < kLimit &&
                     kernel < kLimit && in < kLimit && std::abs(pad) < kLimit &&
                     std::abs(s.padding_end[d]) < kLimit && s.output_padding[d] >= 0 &&
                     s.output_padding[d] < kLimit,
                 "kernel, stride, padding or dilation out of range");
    const i64 reach = dilation * (kernel - 1) + 1;
    const i64 out = s.transposed
                        ? (in - 1) * stride - pad - s.padding_end[d] + reach + s.output_padding[d]
                        : (in + pad + s.padding_end[d] - reach < 0
                               ? 0
                               : (in + pad + s.padding_end[d] - reach) / stride + 1);
    EVAL_REQUIRE(out > 0 && out < kLimit / kernel, "the result's size is out of range");
    g.in.push_back(in);
    g.kernel.push_back(kernel);
    g.out.push_back(out);
    std::vector<i64> &source = g.source[d];
    source.assign(static_cast<size_t>(out * kernel), -1);
    for (i64 o = 0; o < out; ++o)
      for (i64 k = 0; k < kernel; ++k) {
        i64 at = s.transposed ? o + pad - k * dilation : o * stride - pad + k * dilation;
        if (s.transposed) {
          if (at < 0 || at % stride)
            continue;
          at /= stride;
        }
        if (at >= 0 && at < in)
          source[static_cast<size_t>(o * kernel + k)] = at;
      }
  }
  const ElementType wide = product_element(element);
  EVAL_REQUIRE(wide != ElementType::None && computable(x.element()) && computable(w.element()),
               "this element type has no products");
  Tensor bias;
  if (given_bias) {
    EVAL_REQUIRE(computable(given_bias->element()) && given_bias->num_elements() == g.out_channels,
                 "the bias has another length than the output channels");
    bias = cast(*given_bias, wide);
  }
  Shape shape{g.batch, g.out_channels};
  shape.insert(shape.end(), g.out.begin(), g.out.end());
  Tensor out = Tensor::allocate(wide, shape);
  const Tensor cx = cast(x, wide);
  const Tensor cw = cast(w, wide);
  const Tensor *b = bias.defined() ? &bias : nullptr;
  if (wide == ElementType::F32)
    run_tiles<float>(g, cx, cw, b, out);
  else if (wide == ElementType::F64)
    run_tiles<double>(g, cx, cw, b, out);
  else
    run_tiles<u64>(g, cx, cw, b, out);
  if (!batched)
    shape.erase(shape.begin());
  result = cast(out, element).reshaped(shape);
  return {};
}

namespace {

Status run_convolution(KernelContext &ctx, ConvSettings s) {
  Tensor out;
  if (Status status =
          convolve(ctx, std::move(s), ctx.in(0), ctx.in(1), ctx.maybe(2), ctx.type().element, out);
      !status)
    return status;
  ctx.set(0, std::move(out));
  return {};
}

ConvSettings common_settings(KernelContext &ctx) {
  ConvSettings s;
  s.stride = ctx.integers("stride");
  s.padding = ctx.integers("padding");
  s.padding_end = s.padding;
  s.dilation = ctx.integers("dilation");
  s.groups = ctx.integer("groups");
  return s;
}
Status k_convolution(KernelContext &ctx) {
  ConvSettings s = common_settings(ctx);
  s.transposed = ctx.boolean("transposed");
  s.output_padding = ctx.integers("output_padding");
  if (!s.transposed)
    s.output_padding.clear();
  return run_convolution(ctx, std::move(s));
}
Status k_conv(KernelContext &ctx) { return run_convolution(ctx, common_settings(ctx)); }
Status k_conv_padding(KernelContext &ctx) {
  ConvSettings s = common_settings(ctx);
  const std::string_view mode = ctx.text("padding");
  EVAL_REQUIRE(mode == "same" || mode == "valid", "unknown padding mode");
  s.padding.clear();
  s.padding_end.clear();
  const Shape &w = ctx.in(1).shape();
  if (mode == "same")
    for (size_t d = 2; d < w.size(); ++d) {
      const i64 dilation =
          s.dilation.empty() ? 1 : s.dilation[std::min(d - 2, s.dilation.size() - 1)];
      const i64 total = dilation * (w[d] - 1);
      s.padding.push_back(total / 2); // the odd one goes to the end
      s.padding_end.push_back(total - total / 2);
    }
  return run_convolution(ctx, std::move(s));
}
Status k_conv_transpose(KernelContext &ctx) {
  ConvSettings s = common_settings(ctx);
  s.transposed = true;
  s.output_padding = ctx.integers("output_padding");
  return run_convolution(ctx, std::move(s));
}

constexpr KernelEntry kEntries[] = {
    {"aten.convolution.default", k_convolution},
    {"aten._convolution.default", k_convolution},
    {"aten.conv1d.default", k_conv},
    {"aten.conv2d.default", k_conv},
    {"aten.conv3d.default", k_conv},
    {"aten.conv1d.padding", k_conv_padding},
    {"aten.conv2d.padding", k_conv_padding},
    {"aten.conv3d.padding", k_conv_padding},
    {"aten.conv_transpose1d.default", k_conv_transpose},
    {"aten.conv_transpose2d.input", k_conv_transpose},
    {"aten.conv_transpose3d.input", k_conv_transpose},
};

} // namespace

std::span<const KernelEntry> conv_kernels() { return kEntries; }

} // namespace chute::eval

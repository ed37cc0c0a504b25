// Normalizations and three-dimensional convolutions of the Circle dialect: channels are last.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/rows.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>

namespace chute::eval {

namespace {

std::vector<double> doubles(const Tensor &t) {
  std::vector<double> v(static_cast<size_t>(t.num_elements()));
  load_run(t.element(), t.data(), t.num_elements(), v.data());
  return v;
}

/// Runs `f(row)` over the rows of the last dim, in double, and sets result 0.
template <class F>
Status map_rows(KernelContext &ctx, F f) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() > 0 && ir::is_float(x.element()), "needs floats along a dim");
  const i64 length = x.dim(x.rank() - 1);
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  const auto item = static_cast<i64>(x.item_bytes());
  const auto out_item = static_cast<i64>(out.item_bytes());
  parallel_for(
      length ? x.num_elements() / length : 0, row_grain(length * 4), [&](i64 begin, i64 end) {
        std::vector<double> v(static_cast<size_t>(length));
        for (i64 r = begin; r < end; ++r) {
          load_run(x.element(), x.data() + r * length * item, length, v.data());
          f(v);
          store_run(out.element(), v.data(), length, out.mutable_data() + r * length * out_item);
        }
      });
  ctx.set(0, std::move(out));
  return activate(ctx);
}

/// x / sqrt(sum of squares), which is at least 1e-6 (TFLite).
Status k_l2_normalization(KernelContext &ctx) {
  return map_rows(ctx, [](std::vector<double> &v) {
    double sum = 0;
    for (const double a : v)
      sum += a * a;
    const double norm = std::max(std::sqrt(sum), 1e-6);
    for (double &a : v)
      a /= norm;
  });
}

/// x * (bias + alpha * sum over the channels within `radius` of x^2)^-beta.
Status k_local_response(KernelContext &ctx) {
  const i64 radius = ctx.integer("radius");
  const double bias = ctx.real("bias");
  const double alpha = ctx.real("alpha");
  const double beta = ctx.real("beta");
  EVAL_REQUIRE(radius >= 0, "the radius is negative");
  return map_rows(ctx, [=](std::vector<double> &v) {
    const auto n = static_cast<i64>(v.size());
    std::vector<double> out(v.size());
    for (i64 c = 0; c < n; ++c) {
      double sum = 0;
      for (i64 k = std::max<i64>(0, c - std::min(radius, n)); k <= std::min(n - 1, c + radius); ++k)
        sum += v[static_cast<size_t>(k)] * v[static_cast<size_t>(k)];
      out[static_cast<size_t>(c)] = v[static_cast<size_t>(c)] * std::pow(bias + alpha * sum, -beta);
    }
    v = std::move(out);
  });
}

/// Each channel of each sample by its own mean and variance over all positions.
Status k_instance_norm(KernelContext &ctx) { // (x, gamma, beta)
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() >= 3 && ir::is_float(x.element()), "the operand has too few dims");
  const i64 channels = x.dim(x.rank() - 1);
  const auto parameter = [&](const Tensor &t) {
    std::vector<double> v = doubles(t);
    if (v.size() == 1)
      v.assign(static_cast<size_t>(channels), v[0]);
    return v;
  };
  const std::vector<double> gamma = parameter(ctx.in(1));
  const std::vector<double> beta = parameter(ctx.in(2));
  EVAL_REQUIRE(static_cast<i64>(gamma.size()) == channels && gamma.size() == beta.size(),
               "gamma or beta do not fit the channels");
  const double eps = ctx.real("epsilon");
  const i64 samples = x.dim(0);
  const i64 planes = samples * channels;
  const i64 positions = planes > 0 ? x.num_elements() / planes : 0;
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  const auto item = static_cast<i64>(x.item_bytes());
  const auto out_item = static_cast<i64>(out.item_bytes());
  parallel_for(samples, 1, [&](i64 begin, i64 end) {
    std::vector<double> v(static_cast<size_t>(positions * channels));
    for (i64 s = begin; s < end; ++s) {
      const auto n = static_cast<i64>(v.size());
      load_run(x.element(), x.data() + s * n * item, n, v.data());
      for (i64 c = 0; c < channels; ++c) {
        double mean = 0;
        for (i64 p = c; p < n; p += channels)
          mean += v[static_cast<size_t>(p)];
        mean /= static_cast<double>(positions);
        double var = 0;
        for (i64 p = c; p < n; p += channels)
          var += (v[static_cast<size_t>(p)] - mean) * (v[static_cast<size_t>(p)] - mean);
        const double scale =
            gamma[static_cast<size_t>(c)] / std::sqrt(var / static_cast<double>(positions) + eps);
        for (i64 p = c; p < n; p += channels)
          v[static_cast<size_t>(p)] =
              (v[static_cast<size_t>(p)] - mean) * scale + beta[static_cast<size_t>(c)];
      }
      store_run(out.element(), v.data(), n, out.mutable_data() + s * n * out_item);
    }
  });
  ctx.set(0, std::move(out));
  return activate(ctx);
}

/// Square root of the mean square of each window; padding does not count.
Status k_l2_pool(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::string_view mode = ctx.text("padding");
  EVAL_REQUIRE(x.rank() == 4 && (mode == "SAME" || mode == "VALID") && ir::is_float(x.element()),
               "operand or padding do not fit");
  const i64 kernel[2] = {ctx.integer("filter_height"), ctx.integer("filter_width")};
  const i64 stride[2] = {ctx.integer("stride_h"), ctx.integer("stride_w")};
  i64 size[2];
  i64 before[2];
  for (int d = 0; d < 2; ++d) {
    constexpr i64 kLimit = i64{1} << 31;
    EVAL_REQUIRE(kernel[d] > 0 && kernel[d] < kLimit && stride[d] > 0 && stride[d] < kLimit,
                 "filter or stride out of range");
    const i64 n = x.dim(d + 1);
    size[d] = mode == "SAME"  ? (n + stride[d] - 1) / stride[d]
              : n < kernel[d] ? 0
                              : (n - kernel[d]) / stride[d] + 1;
    i64 after = 0;
    same_padding(n, size[d], kernel[d], stride[d], 1, mode == "SAME", before[d], after);
  }
  const i64 channels = x.dim(3);
  const std::vector<double> v = doubles(x);
  std::vector<double> out(static_cast<size_t>(x.dim(0) * size[0] * size[1] * channels));
  size_t to = 0;
  for (i64 b = 0; b < x.dim(0); ++b)
    for (i64 i = 0; i < size[0]; ++i)
      for (i64 j = 0; j < size[1]; ++j)
        for (i64 c = 0; c < channels; ++c) {
          double sum = 0;
          i64 count = 0;
          for (i64 y = std::max<i64>(0, i * stride[0] - before[0]);
               y < std::min(x.dim(1), i * stride[0] - before[0] + kernel[0]); ++y)
            for (i64 z = std::max<i64>(0, j * stride[1] - before[1]);
                 z < std::min(x.dim(2), j * stride[1] - before[1] + kernel[1]); ++z, ++count) {
              const double a =
                  v[static_cast<size_t>(((b * x.dim(1) + y) * x.dim(2) + z) * channels + c)];
              sum += a * a;
            }
          out[to++] = count ? std::sqrt(sum / static_cast<double>(count)) : 0;
        }
  Tensor t = Tensor::allocate(ctx.type().element, {x.dim(0), size[0], size[1], channels});
  store_run(t.element(), out.data(), t.num_elements(), t.mutable_data());
  ctx.set(0, std::move(t));
  return activate(ctx);
}

/// Rotary positions: x * cos + turned(x) * sin. GPT_NEOX turns the halves of the last dim, GPT_J
/// neighbours: (a, b) becomes (-b, a).
Status k_rope(KernelContext &ctx) { // (x, sin, cos)
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() > 0 && x.dim(x.rank() - 1) % 2 == 0 && ir::is_float(x.element()) &&
                   broadcasts_to(ctx.in(1).shape(), x.shape()) &&
                   broadcasts_to(ctx.in(2).shape(), x.shape()),
               "the operands do not fit");
  const bool halves = ctx.text("mode") != "GPT_J";
  const i64 n = x.dim(x.rank() - 1);
  const std::vector<double> v = doubles(x);
  std::vector<double> turned(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    const i64 k = static_cast<i64>(i) % n;
    const i64 half = halves ? n / 2 : 1;
    const bool first = halves ? k < half : k % 2 == 0;
    turned[i] = first ? -v[i + static_cast<size_t>(half)] : v[i - static_cast<size_t>(half)];
  }
  const Tensor t = Tensor::of(ElementType::F64, x.shape(), std::span<const double>(turned));
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  const Tensor *in[] = {&x, &ctx.in(2), &t, &ctx.in(1)};
  map_elements<double>(in, out, [](const double *const *a, double *o, i64 count) {
    for (i64 i = 0; i < count; ++i)
      o[i] = a[0][i] * a[1][i] + a[2][i] * a[3][i];
  });
  ctx.set(0, std::move(out));
  return {};
}

/// Convolution over NDHWC; the filter is [D, H, W, in, out], for the transposed one [D, H, W, out,
/// in].
Status conv_3d(KernelContext &ctx, const Tensor &x, const Tensor &w, const Tensor *bias,
               const std::vector<i64> &result) {
  const bool transposed = !result.empty();
  const std::string_view mode = ctx.text("padding");
  EVAL_REQUIRE(x.rank() == 5 && w.rank() == 5 && (mode == "SAME" || mode == "VALID") &&
                   (!transposed || result.size() == 5),
               "an operand is not of rank 5");
  ConvSettings s;
  s.transposed = transposed;
  static constexpr std::string_view kStride[] = {"stride_d", "stride_h", "stride_w"};
  static constexpr std::string_view kDilation[] = {"dilation_d_factor", "dilation_h_factor",
                                                   "dilation_w_factor"};
  for (size_t d = 0; d < 3; ++d) {
    const int i = static_cast<int>(d) + 1;
    s.stride.push_back(ctx.integer(kStride[d]));
    s.dilation.push_back(ctx.integer(kDilation[d]));
    EVAL_REQUIRE(s.stride[d] > 0 && s.stride[d] < (i64{1} << 31) && s.dilation[d] > 0 &&
                     s.dilation[d] < (i64{1} << 31),
                 "stride or dilation out of range");
    i64 begin = 0;
    i64 end = 0;
    const i64 n = transposed ? result[d + 1] : x.dim(i);
    const i64 out = transposed ? x.dim(i) : (n + s.stride[d] - 1) / s.stride[d];
    const i64 kernel = w.dim(static_cast<int>(d));
    same_padding(n, out, kernel, s.stride[d], s.dilation[d], mode == "SAME", begin, end);
    s.padding.push_back(begin);
    if (!transposed) {
      s.padding_end.push_back(end);
      continue;
    }
    const i64 whole = (x.dim(i) - 1) * s.stride[d] + s.dilation[d] * (kernel - 1) + 1;
    const i64 rest = whole - begin - result[d + 1];
    s.padding_end.push_back(std::max<i64>(rest, 0));
    s.output_padding.push_back(std::max<i64>(-rest, 0));
  }
  const std::vector<i64> order{4, 3, 0, 1, 2};
  Tensor out;
  if (Status status =
          convolve(ctx, std::move(s), to_nchw(x), permute(w, order), bias, ctx.type().element, out);
      !status)
    return status;
  ctx.set(0, to_nhwc(out));
  return activate(ctx);
}
Status k_conv_3d(KernelContext &ctx) {
  return conv_3d(ctx, ctx.in(0), ctx.in(1), ctx.maybe(2), {});
}
Status k_conv_3d_transpose(KernelContext &ctx) { // (output_shape, filter, x, bias)
  const std::vector<i64> shape = values_of(ctx.in(0));
  EVAL_REQUIRE(!shape.empty(), "the output shape is empty");
  return conv_3d(ctx, ctx.in(2), ctx.in(1), ctx.maybe(3), shape);
}

constexpr KernelEntry kEntries[] = {
    {"circle.l2_normalization", k_l2_normalization},
    {"circle.local_response_normalization", k_local_response},
    {"circle.instance_norm", k_instance_norm},
    {"circle.l2_pool_2d", k_l2_pool},
    {"circle.rope", k_rope},
    {"circle.conv_3d", k_conv_3d},
    {"circle.conv_3d_transpose", k_conv_3d_transpose},
};

} // namespace

std::span<const KernelEntry> circle_norm_kernels() { return kEntries; }

} // namespace chute::eval

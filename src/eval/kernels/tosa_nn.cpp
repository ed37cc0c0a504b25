// Convolutions, products, pooling and resizing of the TOSA dialect. Integers run in f64 after their
// zero points are taken off, which is exact up to 2^53.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/matmul.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>

namespace chute::eval {

namespace {

/// Narrow floats as f32, integers less their zero point as f64.
Tensor plain(const Tensor &t, const Tensor *zero_point) {
  const ElementType e = t.element();
  if (ir::is_float(e))
    return e == ElementType::F32 || e == ElementType::F64 ? t : cast(t, ElementType::F32);
  Tensor out = cast(t, ElementType::F64);
  const auto zp = zero_point ? static_cast<double>(zero_point->int_at(0)) : 0.0;
  if (zp == 0)
    return out;
  Tensor moved = Tensor::allocate(ElementType::F64, t.shape());
  for (i64 i = 0; i < t.num_elements(); ++i)
    moved.mutable_as<double>()[i] = out.as<double>()[i] - zp;
  return moved;
}

void give(KernelContext &ctx, const Tensor &t) { ctx.set(0, cast(t, ctx.type().element)); }

Tensor wide_bias(const Tensor &bias, i64 channels, ElementType element) {
  Tensor b = cast(bias, element);
  if (b.num_elements() == channels)
    return b;
  const std::vector<i64> strides{0};
  return gather_strided(b, {channels}, 0, strides);
}

/// `spatial` dimensions; the weight comes as [out, in / groups, kernel…].
Status convolution(KernelContext &ctx, size_t spatial, const Tensor &w, i64 groups) {
  const Tensor x = plain(ctx.in(0), &ctx.in(3));
  const std::vector<i64> pad = ctx.integers("pad");
  ConvSettings s;
  s.stride = ctx.integers("stride");
  s.dilation = ctx.integers("dilation");
  EVAL_REQUIRE(x.rank() == static_cast<int>(spatial) + 2 && w.rank() == x.rank() &&
                   pad.size() == 2 * spatial && s.stride.size() == spatial &&
                   s.dilation.size() == spatial && ctx.in(2).num_elements() > 0,
               "operands or attributes have a wrong rank");
  for (size_t i = 0; i < spatial; ++i) {
    EVAL_REQUIRE(s.stride[i] > 0 && s.dilation[i] > 0 && pad[2 * i] >= 0 && pad[2 * i + 1] >= 0,
                 "an attribute is out of range");
    s.padding.push_back(pad[2 * i]);
    s.padding_end.push_back(pad[2 * i + 1]);
  }
  s.groups = groups;
  const Tensor bias = wide_bias(ctx.in(2), w.dim(0), x.element());
  Tensor out;
  if (Status status = convolve(ctx, std::move(s), to_nchw(x), w, &bias, x.element(), out); !status)
    return status;
  give(ctx, to_nhwc(out));
  return {};
}
Status k_conv2d(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(1).rank() == 4, "the weight is not of rank 4");
  return convolution(ctx, 2, to_nchw(plain(ctx.in(1), &ctx.in(4))), 1);
}
Status k_conv3d(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(1).rank() == 5, "the weight is not of rank 5");
  return convolution(ctx, 3, to_nchw(plain(ctx.in(1), &ctx.in(4))), 1);
}
Status k_depthwise(KernelContext &ctx) { // weight [kh, kw, channels, multiplier]
  const Tensor w = plain(ctx.in(1), &ctx.in(4));
  EVAL_REQUIRE(w.rank() == 4 && ctx.in(0).rank() == 4 && w.dim(2) == ctx.in(0).dim(3),
               "operand and weight do not fit");
  const std::vector<i64> dims{2, 3, 0, 1};
  const Tensor oihw = permute(w, dims).reshaped({w.dim(2) * w.dim(3), 1, w.dim(0), w.dim(1)});
  return convolution(ctx, 2, oihw, w.dim(2));
}
Status k_transpose_conv(KernelContext &ctx) { // weight [out, kh, kw, in]
  const Tensor x = plain(ctx.in(0), &ctx.in(3)), w = plain(ctx.in(1), &ctx.in(4));
  const std::vector<i64> pad = ctx.integers("out_pad");
  ConvSettings s;
  s.transposed = true;
  s.stride = ctx.integers("stride");
  s.dilation = {1, 1};
  EVAL_REQUIRE(x.rank() == 4 && w.rank() == 4 && pad.size() == 4 && s.stride.size() == 2 &&
                   s.stride[0] > 0 && s.stride[1] > 0,
               "operands or attributes have a wrong rank");
  for (size_t i = 0; i < 2; ++i) {
    EVAL_REQUIRE(pad[2 * i] <= 0, "padding before a transposed convolution is not evaluated");
    s.padding.push_back(-pad[2 * i]);
    s.padding_end.push_back(std::max<i64>(0, -pad[2 * i + 1]));
    s.output_padding.push_back(std::max<i64>(0, pad[2 * i + 1]));
  }
  const Tensor bias = wide_bias(ctx.in(2), w.dim(0), x.element());
  const std::vector<i64> dims{3, 0, 1, 2};
  Tensor out;
  if (Status status =
          convolve(ctx, std::move(s), to_nchw(x), permute(w, dims), &bias, x.element(), out);
      !status)
    return status;
  give(ctx, to_nhwc(out));
  return {};
}
Status k_matmul(KernelContext &ctx) {
  const Tensor a = plain(ctx.in(0), &ctx.in(2)), b = plain(ctx.in(1), &ctx.in(3));
  Tensor out;
  EVAL_REQUIRE(a.rank() == 3 && b.rank() == 3 && matmul(a, b, false, a.element(), out),
               "the operands' shapes do not fit");
  give(ctx, out);
  return {};
}

struct Windows {
  std::vector<i64> kernel, stride, pad;
};
Status windows(const KernelContext &ctx, Windows &w) {
  w = {ctx.integers("kernel"), ctx.integers("stride"), ctx.integers("pad")};
  const Shape &in = ctx.in(0).shape(), &out = ctx.type().shape;
  EVAL_REQUIRE(in.size() == 4 && out.size() == 4 && ctx.type().known() && w.kernel.size() == 2 &&
                   w.stride.size() == 2 && w.pad.size() == 4 && out[0] == in[0] &&
                   out[3] == in[3] && w.stride[0] > 0 && w.stride[1] > 0,
               "operands or attributes have a wrong rank");
  return {};
}
/// f(elements of the window that lie in the input) for every window and channel.
template <class F>
Status pool(KernelContext &ctx, F f) {
  Windows w;
  if (Status s = windows(ctx, w); !s)
    return s;
  const Tensor &x = ctx.in(0);
  std::vector<double> v(static_cast<size_t>(x.num_elements())), seen;
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  const Shape &out = ctx.type().shape;
  std::vector<double> result;
  result.reserve(static_cast<size_t>(num_elements(out)));
  for (i64 n = 0; n < out[0]; ++n)
    for (i64 y = 0; y < out[1]; ++y)
      for (i64 z = 0; z < out[2]; ++z)
        for (i64 c = 0; c < out[3]; ++c) {
          seen.clear();
          for (i64 i = 0; i < w.kernel[0]; ++i)
            for (i64 j = 0; j < w.kernel[1]; ++j) {
              const i64 r = y * w.stride[0] - w.pad[0] + i, q = z * w.stride[1] - w.pad[2] + j;
              if (r >= 0 && r < x.dim(1) && q >= 0 && q < x.dim(2))
                seen.push_back(
                    v[static_cast<size_t>(((n * x.dim(1) + r) * x.dim(2) + q) * x.dim(3) + c)]);
            }
          EVAL_REQUIRE(!seen.empty(), "a window lies outside of the input");
          result.push_back(f(seen));
        }
  Tensor &t = ctx.out();
  store_run(t.element(), result.data(), t.num_elements(), t.mutable_data());
  return {};
}
Status k_max_pool(KernelContext &ctx) {
  return pool(ctx, [](const std::vector<double> &v) {
    double best = v[0];
    for (double x : v)
      best = x > best || x != x ? x : best;
    return best;
  });
}
Status k_avg_pool(KernelContext &ctx) {
  if (ir::is_float(ctx.in(0).element()))
    return pool(ctx, [](const std::vector<double> &v) {
      double sum = 0;
      for (double x : v)
        sum += x;
      return sum / static_cast<double>(v.size());
    });
  const auto zp = static_cast<double>(ctx.in(1).int_at(0));
  const auto out_zp = static_cast<double>(ctx.in(2).int_at(0));
  const int bits = ir::element_bits(ctx.type().element);
  const double high = std::ldexp(1.0, bits - 1) - 1;
  return pool(ctx, [=](const std::vector<double> &v) {
    i64 sum = 0;
    for (double x : v)
      sum += static_cast<i64>(x - zp);
    // The specification's reciprocal: multiplier and shift of the count.
    const auto count = static_cast<u32>(v.size());
    const int k = 32 - std::countl_zero(count - 1);
    const i64 numerator = ((i64{1} << 30) + 1) << k;
    const __int128 multiplier = numerator / count;
    const int shift = 30 + k;
    const __int128 scaled =
        (static_cast<__int128>(sum) * multiplier + (__int128{1} << (shift - 1))) >> shift;
    return std::clamp(static_cast<double>(static_cast<i64>(scaled)) + out_zp, -high - 1, high);
  });
}

Status k_resize(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> scale = values_of(ctx.in(1)), offset = values_of(ctx.in(2));
  const Shape &out = ctx.type().shape;
  EVAL_REQUIRE(x.rank() == 4 && out.size() == 4 && scale.size() == 4 && offset.size() == 2 &&
                   ctx.type().known() && scale[0] > 0 && scale[2] > 0,
               "operands have a wrong shape");
  const bool nearest = ctx.text("mode") == "NEAREST", whole = !ir::is_float(x.element());
  std::vector<double> v(static_cast<size_t>(x.num_elements())), result;
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  struct Position {
    i64 low, high;
    double part; ///< in units of the scale for integers
  };
  const auto at = [&](size_t d, i64 o) {
    const i64 n = scale[2 * d], y = o * scale[2 * d + 1] + offset[d];
    const i64 i = y >= 0 ? y / n : -((-y + n - 1) / n);
    const i64 last = x.dim(static_cast<int>(d) + 1) - 1, f = y - i * n;
    const i64 chosen = nearest ? i + (2 * f >= n) : i;
    return Position{std::clamp<i64>(chosen, 0, last),
                    nearest ? std::clamp<i64>(chosen, 0, last) : std::clamp<i64>(i + 1, 0, last),
                    nearest ? 0
                    : whole ? static_cast<double>(f)
                            : static_cast<double>(f) / static_cast<double>(n)};
  };
  for (i64 n = 0; n < out[0]; ++n)
    for (i64 y = 0; y < out[1]; ++y)
      for (i64 z = 0; z < out[2]; ++z)
        for (i64 c = 0; c < out[3]; ++c) {
          const Position p = at(0, y), q = at(1, z);
          const auto read = [&](i64 r, i64 s) {
            return v[static_cast<size_t>(((n * x.dim(1) + r) * x.dim(2) + s) * x.dim(3) + c)];
          };
          if (nearest) {
            result.push_back(read(p.low, q.low));
            continue;
          }
          const double one_y = whole ? static_cast<double>(scale[0]) : 1;
          const double one_x = whole ? static_cast<double>(scale[2]) : 1;
          const double top = read(p.low, q.low) * (one_x - q.part) + read(p.low, q.high) * q.part;
          const double low = read(p.high, q.low) * (one_x - q.part) + read(p.high, q.high) * q.part;
          result.push_back(top * (one_y - p.part) + low * p.part);
        }
  Tensor &t = ctx.out();
  EVAL_REQUIRE(t.num_elements() == static_cast<i64>(result.size()), "the result has a wrong shape");
  store_run(t.element(), result.data(), t.num_elements(), t.mutable_data());
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"tosa.conv2d", k_conv2d},
    {"tosa.conv3d", k_conv3d},
    {"tosa.depthwise_conv2d", k_depthwise},
    {"tosa.transpose_conv2d", k_transpose_conv},
    {"tosa.matmul", k_matmul},
    {"tosa.max_pool2d", k_max_pool},
    {"tosa.avg_pool2d", k_avg_pool},
    {"tosa.resize", k_resize},
};

} // namespace

std::span<const KernelEntry> tosa_nn_kernels() { return kEntries; }

} // namespace chute::eval

// Resampling of one to three spatial dims: nearest, nearest-exact, linear. Source positions follow
// PyTorch's formulas in f32 for f32 and narrower operands, because a position on an edge decides
// which neighbour is taken.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"

#include <algorithm>
#include <cmath>

namespace chute::eval {

namespace {

/// Legacy: linear with positions o * scale, Circle's form without half_pixel_centers.
/// NearestCorners: Circle's nearest with align_corners.
enum class Mode : u8 { Nearest, NearestExact, NearestCorners, Linear, Legacy };

/// Two source indices and the weight of the second, for one output index along one dim.
struct Tap {
  i64 low;
  i64 high;
  double weight;
};

/// P is float or double: the type PyTorch computes positions in.
template <class P>
std::vector<Tap> taps(Mode mode, i64 in, i64 out, double given_scale, bool align_corners) {
  std::vector<Tap> result;
  // Ratio of source to output steps; a given scale factor is used in place of the sizes' quotient.
  P scale = given_scale > 0 ? static_cast<P>(1.0 / given_scale)
                            : static_cast<P>(in) / static_cast<P>(out);
  if (align_corners)
    scale = out > 1 ? static_cast<P>(in - 1) / static_cast<P>(out - 1) : P{0};
  for (i64 o = 0; o < out; ++o) {
    const P at = static_cast<P>(o);
    if (mode != Mode::Linear && mode != Mode::Legacy) {
      const P position = mode == Mode::Nearest        ? at * scale
                         : mode == Mode::NearestExact ? (at + P(0.5)) * scale
                                                      : at * scale + P(0.5);
      const i64 i = std::min(static_cast<i64>(std::floor(position)), in - 1);
      result.push_back({i, i, 0});
      continue;
    }
    P position =
        align_corners || mode == Mode::Legacy ? scale * at : scale * (at + P(0.5)) - P(0.5);
    position = std::max(position, P{0});
    const i64 low = std::min(static_cast<i64>(position), in - 1);
    const i64 high = low + (low < in - 1);
    const P weight = std::clamp(position - static_cast<P>(low), P{0}, P{1});
    result.push_back({low, high, static_cast<double>(weight)});
  }
  return result;
}

/// `x` is [N, C, spatial…], `result` the shape it gets.
Status resize(KernelContext &ctx, const Tensor &x, const Shape &result, Mode mode, size_t rank,
              bool align_corners, const std::vector<double> &scales, Tensor &y) {
  EVAL_REQUIRE(static_cast<size_t>(x.rank()) == rank + 2 && computable(x.element()),
               "needs a batch, channels and the spatial dims");
  EVAL_REQUIRE(ctx.type().known() && result.size() == x.shape().size(),
               "the result's shape is not known");
  EVAL_REQUIRE(result[0] == x.dim(0) && result[1] == x.dim(1), "batch and channels do not change");
  std::vector<Tap> by_dim[3] = {{{0, 0, 0}}, {{0, 0, 0}}, {{0, 0, 0}}};
  i64 in[3] = {1, 1, 1};
  i64 out[3] = {1, 1, 1};
  for (size_t d = 0; d < rank; ++d) {
    const size_t k = 3 - rank + d;
    in[k] = x.shape()[d + 2];
    out[k] = result[d + 2];
    EVAL_REQUIRE(in[k] > 0 && out[k] > 0 && in[k] < (i64{1} << 31) && out[k] < (i64{1} << 31),
                 "a size is out of range");
    const double scale = d < scales.size() ? scales[d] : 0;
    by_dim[k] = x.element() == ElementType::F64
                    ? taps<double>(mode, in[k], out[k], scale, align_corners)
                    : taps<float>(mode, in[k], out[k], scale, align_corners);
  }
  y = Tensor::allocate(x.element(), result);
  const i64 in_size = in[0] * in[1] * in[2];
  const i64 out_size = out[0] * out[1] * out[2];
  const auto item = static_cast<i64>(x.item_bytes());
  parallel_for(x.dim(0) * x.dim(1), 4096 / out_size + 1, [&](i64 begin, i64 end) {
    std::vector<double> plane(static_cast<size_t>(in_size));
    std::vector<double> to(static_cast<size_t>(out_size));
    for (i64 p = begin; p < end; ++p) {
      load_run(x.element(), x.data() + p * in_size * item, in_size, plane.data());
      const auto read = [&](i64 a, i64 b, i64 c) {
        return plane[static_cast<size_t>((a * in[1] + b) * in[2] + c)];
      };
      const auto along = [](double low, double high, double w) { return low * (1 - w) + high * w; };
      size_t o = 0;
      for (const Tap &a : by_dim[0])
        for (const Tap &b : by_dim[1])
          for (const Tap &c : by_dim[2]) {
            if (mode != Mode::Linear && mode != Mode::Legacy) {
              to[o++] = read(a.low, b.low, c.low);
              continue;
            }
            const auto line = [&](i64 i, i64 j) {
              return along(read(i, j, c.low), read(i, j, c.high), c.weight);
            };
            const auto face = [&](i64 i) {
              return along(line(i, b.low), line(i, b.high), b.weight);
            };
            to[o++] = rank == 3 ? along(face(a.low), face(a.high), a.weight) : face(0);
          }
      store_run(y.element(), to.data(), out_size, y.mutable_data() + p * out_size * item);
    }
  });
  return {};
}

/// `.vec` overloads: scale_factors or none. Scalar overloads: scales, or scales_d, scales_h,
/// scales_w.
std::vector<double> scales_of(const KernelContext &ctx, size_t rank) {
  const ir::OpDef &def = ctx.op().def();
  if (def.attr_index("scale_factors") >= 0)
    return ctx.reals("scale_factors");
  if (rank == 1)
    return {ctx.real_or("scales", 0)};
  std::vector<double> s;
  if (rank == 3)
    s.push_back(ctx.real_or("scales_d", 0));
  s.push_back(ctx.real_or("scales_h", 0));
  s.push_back(ctx.real_or("scales_w", 0));
  return s;
}

template <Mode mode, size_t rank>
Status k_resize(KernelContext &ctx) {
  Tensor y;
  if (Status s = resize(ctx, ctx.in(0), ctx.type().shape, mode, rank, ctx.boolean("align_corners"),
                        scales_of(ctx, rank), y);
      !s)
    return s;
  ctx.set(0, std::move(y));
  return {};
}

/// Circle: NHWC, the size from the declared result.
template <bool linear>
Status k_circle_resize(KernelContext &ctx) {
  const bool corners = ctx.boolean("align_corners");
  const bool half = ctx.boolean("half_pixel_centers");
  EVAL_REQUIRE(ctx.type().known() && ctx.type().shape.size() == 4 && ctx.in(0).rank() == 4,
               "operand or result are not of rank 4");
  const Shape &s = ctx.type().shape;
  const Mode mode = linear    ? corners || half ? Mode::Linear : Mode::Legacy
                    : corners ? Mode::NearestCorners
                    : half    ? Mode::NearestExact
                              : Mode::Nearest;
  Tensor y;
  if (Status status =
          resize(ctx, to_nchw(ctx.in(0)), {s[0], s[3], s[1], s[2]}, mode, 2, corners, {}, y);
      !status)
    return status;
  ctx.set(0, to_nhwc(y));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle.resize_bilinear", k_circle_resize<true>},
    {"circle.resize_nearest_neighbor", k_circle_resize<false>},
    {"circle_custom.resize_bilinear.default", k_circle_resize<true>},
    {"circle_custom.resize_nearest_neighbor.default", k_circle_resize<false>},
    {"aten.upsample_nearest1d.default", k_resize<Mode::Nearest, 1>},
    {"aten.upsample_nearest1d.vec", k_resize<Mode::Nearest, 1>},
    {"aten.upsample_nearest2d.default", k_resize<Mode::Nearest, 2>},
    {"aten.upsample_nearest2d.vec", k_resize<Mode::Nearest, 2>},
    {"aten.upsample_nearest3d.default", k_resize<Mode::Nearest, 3>},
    {"aten.upsample_nearest3d.vec", k_resize<Mode::Nearest, 3>},
    {"aten._upsample_nearest_exact1d.default", k_resize<Mode::NearestExact, 1>},
    {"aten._upsample_nearest_exact1d.vec", k_resize<Mode::NearestExact, 1>},
    {"aten._upsample_nearest_exact2d.default", k_resize<Mode::NearestExact, 2>},
    {"aten._upsample_nearest_exact2d.vec", k_resize<Mode::NearestExact, 2>},
    {"aten._upsample_nearest_exact3d.default", k_resize<Mode::NearestExact, 3>},
    {"aten._upsample_nearest_exact3d.vec", k_resize<Mode::NearestExact, 3>},
    {"aten.upsample_linear1d.default", k_resize<Mode::Linear, 1>},
    {"aten.upsample_linear1d.vec", k_resize<Mode::Linear, 1>},
    {"aten.upsample_bilinear2d.default", k_resize<Mode::Linear, 2>},
    {"aten.upsample_bilinear2d.vec", k_resize<Mode::Linear, 2>},
    {"aten.upsample_trilinear3d.default", k_resize<Mode::Linear, 3>},
    {"aten.upsample_trilinear3d.vec", k_resize<Mode::Linear, 3>},
};

} // namespace

std::span<const KernelEntry> resize_kernels() { return kEntries; }

} // namespace chute::eval

#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <cmath>

// Resampling that no target has an operator for, over static sizes: one dimension at a time, from
// positions and weights computed here. Positions are computed in f32, as PyTorch's kernels do.
namespace chute::aten {

namespace {

/// Source step per output element.
float step_of(i64 in, i64 out, bool corners, std::optional<double> factor) {
  if (corners)
    return out > 1 ? float(in - 1) / float(out - 1) : 0.0f;
  return factor && *factor > 0 ? float(1.0 / *factor) : float(in) / float(out);
}

using Taps = std::vector<std::vector<i64>>; // per tap: source index of each output
using TapWeights = std::vector<std::vector<double>>;

V gather_taps(Emit &e, V x, int dim, const Taps &at, const TapWeights &weights) {
  V sum = nullptr;
  std::vector<i64> shape(size_t(x->type().rank()), 1);
  shape[size_t(dim)] = i64(at[0].size());
  for (size_t t = 0; t < at.size(); ++t) {
    V tap = e.index_select(x, dim, e.i64s(at[t]));
    if (!weights.empty())
      tap = e.mul(tap, e.constant(x->type().element(), shape, weights[t]));
    sum = sum ? e.add(sum, tap) : tap;
  }
  return sum;
}

V nearest(Emit &e, V x, int dim, i64 out, bool exact, std::optional<double> factor) {
  const i64 in = x->type().dim(dim).value();
  const float step = step_of(in, out, false, factor);
  Taps at(1);
  for (i64 i = 0; i < out; ++i)
    at[0].push_back(
        std::min<i64>(i64(std::floor((float(i) + (exact ? 0.5f : 0.0f)) * step)), in - 1));
  return gather_taps(e, x, dim, at, {});
}

V linear(Emit &e, V x, int dim, i64 out, bool corners, std::optional<double> factor) {
  const i64 in = x->type().dim(dim).value();
  const float step = step_of(in, out, corners, factor);
  Taps at(2);
  TapWeights w(2);
  for (i64 i = 0; i < out; ++i) {
    const float source =
        corners ? step * float(i) : std::max(step * (float(i) + 0.5f) - 0.5f, 0.0f);
    const i64 low = std::min<i64>(i64(source), in - 1);
    const float part = std::clamp(source - float(low), 0.0f, 1.0f);
    at[0].push_back(low);
    at[1].push_back(std::min(low + 1, in - 1));
    w[0].push_back(1.0f - part);
    w[1].push_back(part);
  }
  return gather_taps(e, x, dim, at, w);
}

/// Keys' cubic convolution kernel with parameter a.
double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

V cubic(Emit &e, V x, int dim, i64 out, bool corners, std::optional<double> factor) {
  const i64 in = x->type().dim(dim).value();
  const float step = step_of(in, out, corners, factor);
  Taps at(4);
  TapWeights w(4);
  for (i64 i = 0; i < out; ++i) {
    const float source = corners ? step * float(i) : step * (float(i) + 0.5f) - 0.5f;
    const float low = std::floor(source);
    for (int t = 0; t < 4; ++t) {
      at[size_t(t)].push_back(std::clamp<i64>(i64(low) + t - 1, 0, in - 1));
      w[size_t(t)].push_back(cubic_weight(double(source - low) - (t - 1), -0.75));
    }
  }
  return gather_taps(e, x, dim, at, w);
}

/// Antialiased: each output is a weighted mean over a support that grows with the step; one matmul.
/// PyTorch leaves a dimension that keeps its size as it is, whatever factor is given.
V antialiased(Emit &e, V x, int dim, i64 out, bool corners, std::optional<double> factor,
              bool is_cubic) {
  const i64 in = x->type().dim(dim).value();
  if (in == out)
    return x;
  const double step = step_of(in, out, corners, factor);
  const double support = (is_cubic ? 2.0 : 1.0) * std::max(step, 1.0);
  const double shrink = step >= 1 ? 1 / step : 1;
  std::vector<double> matrix(size_t(out * in), 0.0);
  for (i64 i = 0; i < out; ++i) {
    const double center = step * (double(i) + 0.5);
    const i64 first = std::max<i64>(i64(center - support + 0.5), 0);
    const i64 last = std::min<i64>(i64(center + support + 0.5), in);
    double total = 0;
    for (i64 j = first; j < last; ++j) {
      const double d = (double(j) - center + 0.5) * shrink;
      const double w = is_cubic ? cubic_weight(d, -0.5) : std::max(0.0, 1 - std::abs(d));
      matrix[size_t(i * in + j)] = w;
      total += w;
    }
    for (i64 j = first; total != 0 && j < last; ++j)
      matrix[size_t(i * in + j)] /= total;
  }
  V m = e.constant(x->type().element(), {out, in}, matrix);
  const bool last_dim = dim == x->type().rank() - 1;
  return last_dim ? e.matmul(x, e.transpose(m, 0, 1)) : e.matmul(m, x);
}

enum class Mode : u8 { Nearest, NearestExact, Linear, Cubic, LinearAa, CubicAa };

V resample(Emit &e, Mode mode) {
  const bool bytes = e.type().element() == ElementType::U8;
  const bool weighted = mode != Mode::Nearest && mode != Mode::NearestExact;
  V x = weighted ? e.to_float(e.up(e.in())) : e.in();
  const int rank = e.type().rank();
  const bool corners = e.root().def().attr_index("align_corners") >= 0 && e.flag("align_corners");
  std::vector<double> factors;
  for (std::string_view name : {"scales_d", "scales_h", "scales_w", "scales"})
    if (e.root().def().attr_index(name) >= 0 && e.given(name))
      factors.push_back(e.number(name));
  if (e.root().def().attr_index("scale_factors") >= 0 && e.given("scale_factors"))
    for (double f : e.attr("scale_factors").as_floats())
      factors.push_back(f);
  for (int d = 2; d < rank; ++d) {
    const SymInt in = x->type().dim(d), out = e.type().dim(d);
    if (in.is_symbolic() || out.is_symbolic())
      return e.reject("resampling over a size that is not static");
    std::optional<double> f;
    if (factors.size() == size_t(rank - 2))
      f = factors[size_t(d - 2)];
    const i64 n = out.value();
    switch (mode) {
    case Mode::Nearest: x = nearest(e, x, d, n, false, f); break;
    case Mode::NearestExact: x = nearest(e, x, d, n, true, f); break;
    case Mode::Linear: x = linear(e, x, d, n, corners, f); break;
    case Mode::Cubic: x = cubic(e, x, d, n, corners, f); break;
    case Mode::LinearAa: x = antialiased(e, x, d, n, corners, f, false); break;
    case Mode::CubicAa: x = antialiased(e, x, d, n, corners, f, true); break;
    }
  }
  if (bytes && weighted) // a cubic overshoots
    x = e.minimum(e.maximum(e.op(op::floor, {e.add(x, 0.5)}), 0.0), 255.0);
  return x;
}

template <Mode M>
V resample_as(Emit &e) {
  return resample(e, M);
}

// --- affine grids
// ---------------------------------------------------------------------------------

/// Coordinates of pixel centers (or corners) in [-1, 1].
std::vector<double> base_line(i64 n, bool corners) {
  std::vector<double> out;
  for (i64 i = 0; i < n; ++i) {
    const double at = n > 1 ? -1 + 2 * double(i) / double(n - 1) : 0;
    out.push_back(corners || n == 1 ? at : at * double(n - 1) / double(n));
  }
  return out;
}

V affine_grid(Emit &e) {
  const auto size = e.ints("size");
  if (e.failed() || size.size() < 4)
    return e.reject("an affine grid over a size that is not static");
  const bool corners = e.flag("align_corners");
  const size_t n =
      size.size() - 2; // spatial dimensions; coordinates are named from the last one on
  std::vector<std::vector<double>> lines;
  i64 points = 1;
  for (size_t d = 0; d < n; ++d) {
    lines.push_back(base_line(size[size.size() - 1 - d], corners));
    points *= size[2 + d];
  }
  std::vector<double> base;
  for (i64 i = 0; i < points; ++i) {
    i64 rest = i;
    for (const auto &line : lines) {
      base.push_back(line[size_t(rest % i64(line.size()))]);
      rest /= i64(line.size());
    }
    base.push_back(1.0);
  }
  V theta = e.up(e.in());
  V grid = e.constant(theta->type().element(), {1, points, i64(n) + 1}, base);
  return e.view(e.matmul(grid, e.transpose(theta, 1, 2)), e.shape());
}

} // namespace

void add_static_resample_rules(pass::PatternSet &set) {
  set.add("nearest-3d", {op::upsample_nearest3d, op::upsample_nearest3d_vec},
          rule<resample_as<Mode::Nearest>>);
  set.add("nearest-exact",
          {op::u_upsample_nearest_exact1d, op::u_upsample_nearest_exact1d_vec,
           op::u_upsample_nearest_exact2d, op::u_upsample_nearest_exact2d_vec,
           op::u_upsample_nearest_exact3d, op::u_upsample_nearest_exact3d_vec},
          rule<resample_as<Mode::NearestExact>>);
  set.add("trilinear", {op::upsample_trilinear3d, op::upsample_trilinear3d_vec},
          rule<resample_as<Mode::Linear>>);
  set.add("bicubic", {op::upsample_bicubic2d, op::upsample_bicubic2d_vec},
          rule<resample_as<Mode::Cubic>>);
  set.add("bilinear-antialiased", {op::u_upsample_bilinear2d_aa, op::u_upsample_bilinear2d_aa_vec},
          rule<resample_as<Mode::LinearAa>>);
  set.add("bicubic-antialiased", {op::u_upsample_bicubic2d_aa_vec},
          rule<resample_as<Mode::CubicAa>>);
  set.add("affine-grid", {op::affine_grid_generator}, rule<affine_grid>);
}

} // namespace chute::aten

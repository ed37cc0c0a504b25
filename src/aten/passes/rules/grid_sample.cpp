#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

// Sampling planes and volumes of static size at positions known at run time: each neighbour of a
// position is one gather from the flattened input.
namespace chute::aten {

namespace {

enum Interpolation : i64 { kLinear, kNearest, kCubic };
enum Padding : i64 { kZeros, kBorder, kReflection };

/// What the operator's arguments say.
struct Sampler {
  V x;                    // [N, C, spatial…], in f32 where it was a half
  std::vector<i64> sizes; // of the spatial dimensions
  i64 padding;
  bool corners;
};

/// Grid coordinate in [-1, 1] to a position among `n` elements.
V unnormalize(Emit &e, V g, i64 n, bool corners) {
  return corners ? e.mul(e.add(g, 1.0), double(n - 1) / 2)
                 : e.div(e.sub(e.mul(e.add(g, 1.0), double(n)), 1.0), 2.0);
}

V clip(Emit &e, V at, i64 n) { return e.minimum(e.maximum(at, 0.0), double(n - 1)); }

/// A position outside, mirrored at the border pixels' centers (corners) or outer edges.
V reflect(Emit &e, V at, i64 n, bool corners) {
  const double low = corners ? 0 : -0.5, span = corners ? double(n - 1) : double(n);
  if (span == 0)
    return e.mul(at, 0.0);
  V away = e.abs(e.sub(at, low));
  V flips = e.op(op::floor, {e.div(away, span)});
  V extra = e.sub(away, e.mul(flips, span));
  V half = e.div(flips, 2.0);
  V even = e.eq(half, e.op(op::floor, {half}));
  return e.add(e.where(even, extra, e.rsub(span, extra)), low);
}

/// A position by the padding mode: inside, but for zeros, which look at it later.
V padded(Emit &e, const Sampler &s, V at, size_t d) {
  if (s.padding == kZeros)
    return at;
  return clip(e, s.padding == kReflection ? reflect(e, at, s.sizes[d], s.corners) : at, s.sizes[d]);
}

/// x at integer positions (as floats), one tensor [N, out…] per dimension; 0 outside for zeros.
V sample_at(Emit &e, const Sampler &s, const Values &at) {
  const Shape in = e.shape_of(s.x), o = e.shape_of(at[0]);
  V index = nullptr, inside = nullptr;
  i64 volume = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    V c = clip(e, at[d], s.sizes[d]);
    index = index ? e.add(e.mul(index, double(s.sizes[d])), c) : c;
    if (s.padding == kZeros) {
      V here = e.eq(c, at[d]);
      inside = inside ? e.land(inside, here) : here;
    }
    volume *= s.sizes[d];
  }
  const Shape places(o.begin() + 1, o.end());
  const SymInt points = e.mul_sizes(places);
  Shape out{in[0], in[1]};
  out.insert(out.end(), places.begin(), places.end());
  V flat_at = e.view(e.cast(index, ElementType::I64), {in[0], 1, points});
  V value = e.op(op::gather,
                 {e.view(s.x, {in[0], in[1], volume}), e.expand(flat_at, {in[0], in[1], points})},
                 {{"dim", Attr::of_int(2)}});
  value = e.view(value, out);
  // Not multiplied: what lies outside must not turn an infinity into a NaN.
  return inside ? e.where(e.unsqueeze(inside, 1), value, e.scalar_like(0, value)) : value;
}

/// The sum of the corners around each position, weighted by how near they are.
V linear(Emit &e, const Sampler &s, const Values &at) {
  const size_t n = at.size();
  Values low(n), high(n), after(n), before(n);
  for (size_t d = 0; d < n; ++d) {
    low[d] = e.op(op::floor, {at[d]});
    high[d] = e.add(low[d], 1.0);
    after[d] = e.sub(at[d], low[d]);
    before[d] = e.sub(high[d], at[d]);
  }
  V sum = nullptr;
  for (size_t corner = 0; corner < size_t(1) << n; ++corner) {
    Values where(n);
    V weight = nullptr;
    for (size_t d = 0; d < n; ++d) {
      const bool up = corner >> (n - 1 - d) & 1;
      where[d] = up ? high[d] : low[d];
      V w = up ? after[d] : before[d];
      weight = weight ? e.mul(weight, w) : w;
    }
    V part = e.mul(sample_at(e, s, where), e.unsqueeze(weight, 1));
    sum = sum ? e.add(sum, part) : part;
  }
  return sum;
}

/// Keys' cubic weights, a = -0.75, of the four elements around a position `t` behind the second.
Values cubic_weights(Emit &e, V t) {
  constexpr double a = -0.75;
  const auto near = [&](V x) { // |x| <= 1
    return e.add(e.mul(e.mul(e.sub(e.mul(x, a + 2), a + 3), x), x), 1.0);
  };
  const auto far = [&](V x) { // 1 < |x| < 2
    return e.sub(e.mul(e.add(e.mul(e.sub(e.mul(x, a), 5 * a), x), 8 * a), x), 4 * a);
  };
  V back = e.rsub(1, t);
  return {far(e.add(t, 1.0)), near(t), near(back), far(e.add(back, 1.0))};
}

V cubic(Emit &e, const Sampler &s, const Values &at) {
  std::vector<Values> places(2), weights(2);
  for (size_t d = 0; d < 2; ++d) {
    V low = e.op(op::floor, {at[d]});
    weights[d] = cubic_weights(e, e.sub(at[d], low));
    for (int tap = -1; tap <= 2; ++tap)
      places[d].push_back(padded(e, s, e.add(low, double(tap)), d));
  }
  V sum = nullptr;
  for (size_t i = 0; i < 4; ++i) {
    V row = nullptr;
    for (size_t j = 0; j < 4; ++j) {
      V part = e.mul(sample_at(e, s, {places[0][i], places[1][j]}), e.unsqueeze(weights[1][j], 1));
      row = row ? e.add(row, part) : part;
    }
    row = e.mul(row, e.unsqueeze(weights[0][i], 1));
    sum = sum ? e.add(sum, row) : row;
  }
  return sum;
}

V grid_sample(Emit &e) {
  Sampler s{e.up(e.in(0)), {}, e.integer("padding_mode"), e.flag("align_corners")};
  V grid = e.up(e.in(1));
  const i64 mode = e.integer("interpolation_mode");
  const int n = s.x->type().rank() - 2;
  if (!s.x->type().has_static_shape())
    return e.reject("grid sampling of a size that is not static");
  if (e.failed() || mode > kCubic || (mode == kCubic && n != 2))
    return e.reject("an interpolation that PyTorch does not have");
  Values at;
  for (int d = 0; d < n; ++d) {
    s.sizes.push_back(s.x->type().dim(d + 2).value());
    // Coordinates are in the order of the last dimension first.
    V position = unnormalize(e, e.select(grid, n + 1, n - 1 - d), s.sizes.back(), s.corners);
    at.push_back(mode == kCubic ? position : padded(e, s, position, size_t(d)));
  }
  if (mode == kCubic)
    return cubic(e, s, at);
  if (mode == kLinear)
    return linear(e, s, at);
  for (V &v : at)
    v = e.op(op::round, {v});
  return sample_at(e, s, at);
}

} // namespace

void add_grid_sample_rules(pass::PatternSet &set) {
  set.add("grid-sample", {op::grid_sampler, op::grid_sampler_2d, op::grid_sampler_3d},
          rule<grid_sample>);
}

} // namespace chute::aten

// upsample_nearest2d and upsample_bilinear2d by RESIZE on NHWC.
//
// RESIZE computes the position (o * d + offset) / n in the input for output o, with scale n / d,
// and takes the nearest element, a half upwards. torch's nearest takes floor(o * in / out): twice
// the scale and an offset of minus a half make the two equal. Ratios that RESIZE cannot express
// become lookups of rows and columns.
#include "tosa/legalize/conv.h"

#include <cmath>
#include <numeric>

namespace chute::tosa {

namespace {

namespace a = aten::op;

constexpr i64 kLargestScale = 2048; ///< what the numerator of a scale may be

struct Sizes {
  i64 in[2];
  i64 out[2];
  double scale[2]; ///< factor given by the caller, 0 when there is none
};

bool read(Emit &e, Sizes &s) {
  const Type in = e.arg(0)->type();
  if (in.rank() != 4 || !is_float(e.arg(0))) {
    e.unsupported("of integers or of other than four dimensions", "cast to float32 first");
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    s.in[i] = in.dim(i + 2).value();
    s.out[i] = e.type().dim(i + 2).value();
    s.scale[i] = 0;
  }
  const Attr factors = e.attr("scale_factors");
  if (factors.kind() == ir::AttrKind::Floats && factors.as_floats().size() == 2)
    for (size_t i = 0; i < 2; ++i)
      s.scale[i] = factors.as_floats()[i];
  s.scale[0] = e.number("scales_h", s.scale[0]);
  s.scale[1] = e.number("scales_w", s.scale[1]);
  return true;
}

/// Scale n / d, offset and border of one dimension.
struct Ratio {
  i64 n = 1, d = 1, offset = 0, border = 0;

  bool fits() const {
    return n <= kLargestScale && d < 16 * n && offset >= -n && offset < 16 * n &&
           border >= -16 * n && border < n;
  }
};

Ratio reduced(i64 in, i64 out, i64 n, i64 d, i64 offset) {
  const i64 g = std::gcd(std::gcd(n, d), offset);
  Ratio r{n / g, d / g, offset / g, 0};
  r.border = (out - 1) * r.d - (in - 1) * r.n + r.offset;
  return r;
}

Value *resize(Emit &e, Value *x, const Ratio &h, const Ratio &w, std::string_view mode) {
  return e(op::RESIZE,
           {x, e.shape({h.n, h.d, w.n, w.d}), e.shape({h.offset, w.offset}),
            e.shape({h.border, w.border})},
           {{"mode", e.str(mode)}});
}

/// Source row of each output row, in the float arithmetic of torch.
Dims sources(i64 in, i64 out, double scale) {
  const float ratio = scale > 0 ? static_cast<float>(1.0 / scale)
                                : static_cast<float>(in) / static_cast<float>(out);
  Dims v;
  for (i64 i = 0; i < out; ++i)
    v.push_back(std::min<i64>(static_cast<i64>(std::floor(static_cast<float>(i) * ratio)), in - 1));
  return v;
}

/// Rows `rows` of axis 1 or 2 of NHWC.
Value *lookup(Emit &e, Value *x, i64 axis, const Dims &rows) {
  const Dims in = static_dims(x);
  const auto a = static_cast<size_t>(axis);
  const i64 before = product(std::span(in).first(a));
  const i64 after = product(std::span(in).subspan(a + 1));
  const auto n = static_cast<i64>(rows.size());
  Value *list = e.broadcast(e.i32s(Dims{1, n}, rows), {before, n});
  Dims out = in;
  out[a] = n;
  return e.reshape(e.gather(e.reshape(x, {before, in[a], after}), list), out);
}

/// The row that RESIZE takes for output `o`.
i64 nearest_source(const Ratio &r, i64 in, i64 o) {
  const i64 y = o * r.d + r.offset;
  const i64 low = y >= 0 ? y / r.n : -((-y + r.n - 1) / r.n);
  return std::clamp<i64>(low + (2 * (y - low * r.n) >= r.n), 0, in - 1);
}

/// The simplest fraction near `x`, by continued fractions.
std::pair<i64, i64> fraction(double x) {
  i64 n0 = 0, d0 = 1, n1 = 1, d1 = 0;
  double rest = x;
  for (int i = 0; i < 16; ++i) {
    const double whole = std::floor(rest);
    const auto a = static_cast<i64>(whole);
    const i64 n = a * n1 + n0, d = a * d1 + d0;
    if (n > kLargestScale / 2 || d > kLargestScale / 2)
      break;
    n0 = n1;
    d0 = d1;
    n1 = n;
    d1 = d;
    const double error = std::abs(static_cast<double>(n) / static_cast<double>(d) - x);
    if (error < 1e-9 * x || rest == whole)
      break;
    rest = 1 / (rest - whole);
  }
  return {std::max<i64>(n1, 1), std::max<i64>(d1, 1)};
}

Value *nearest(Emit &e) {
  Sizes s;
  if (!read(e, s))
    return nullptr;
  Value *x = e.transpose(e.arg(0), kToNhwc);
  Ratio ratio[2];
  Dims rows[2];
  bool plain = true;
  for (int i = 0; i < 2; ++i) {
    rows[i] = sources(s.in[i], s.out[i], s.scale[i]);
    ratio[i] = reduced(s.in[i], s.out[i], 2 * s.out[i], 2 * s.in[i], -s.out[i]);
    if (s.scale[i] > 0 && rows[i] != sources(s.in[i], s.out[i], 0)) {
      const auto [n, d] = fraction(s.scale[i]);
      ratio[i] = reduced(s.in[i], s.out[i], 2 * n, 2 * d, -n);
    }
    plain = plain && ratio[i].fits();
    for (i64 o = 0; o < s.out[i]; ++o)
      plain = plain && rows[i][static_cast<size_t>(o)] == nearest_source(ratio[i], s.in[i], o);
  }
  if (plain) {
    x = resize(e, x, ratio[0], ratio[1], "NEAREST");
  } else {
    for (int i = 0; i < 2; ++i)
      x = lookup(e, x, i + 1, rows[i]);
  }
  return e.transpose(x, kToNchw);
}

/// Rows weighted by a matrix [out, in] along axis 1 or 2 of NHWC.
Value *weighted(Emit &e, Value *x, i64 axis, const Sizes &s, bool corners) {
  const auto k = static_cast<int>(axis) - 1;
  const i64 in = s.in[k], out = s.out[k];
  if (in == 1 && out == 1)
    return x;
  const double ratio =
      corners          ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
      : s.scale[k] > 0 ? 1 / s.scale[k]
                       : static_cast<double>(in) / static_cast<double>(out);
  std::vector<double> weights(static_cast<size_t>(in * out), 0.0);
  for (i64 o = 0; o < out; ++o) {
    const double at = corners ? static_cast<double>(o) * ratio
                              : std::max(0.0, (static_cast<double>(o) + 0.5) * ratio - 0.5);
    const i64 low = std::min<i64>(static_cast<i64>(at), in - 1), high = std::min(low + 1, in - 1);
    const double part = at - static_cast<double>(low);
    weights[static_cast<size_t>(o * in + low)] += 1 - part;
    weights[static_cast<size_t>(o * in + high)] += part;
  }
  const Dims dims = static_dims(x);
  const auto a = static_cast<size_t>(axis);
  const i64 before = product(std::span(dims).first(a));
  const i64 after = product(std::span(dims).subspan(a + 1));
  Value *matrix =
      e.broadcast(e.constant(e.element(), Dims{1, out, in}, weights), {before, out, in});
  Dims result = dims;
  result[a] = out;
  return e.reshape(e.matmul(matrix, e.reshape(x, {before, in, after})), result);
}

/// By a whole even factor, further down than RESIZE goes: the mean of the two middle rows (columns)
/// of every `factor`.
bool halves_evenly(const Sizes &s) {
  for (int i = 0; i < 2; ++i) {
    const i64 factor = s.in[i] / s.out[i];
    const bool given =
        s.scale[i] > 0 && std::abs(s.scale[i] * static_cast<double>(factor) - 1) > 1e-6;
    if (s.in[i] != factor * s.out[i] || factor % 2 != 0 || given)
      return false;
  }
  return true;
}
Value *mean_of_middle(Emit &e, Value *x, const Sizes &s) {
  SymDims kernel, stride;
  for (int i = 0; i < 2; ++i) {
    const i64 factor = s.in[i] / s.out[i], cut = factor / 2 - 1;
    x = e.slice(x, i + 1, cut, s.in[i] - cut);
    kernel.push_back(SymInt(2));
    stride.push_back(SymInt(factor));
  }
  const ElementType element = e.element();
  return e(op::AVG_POOL2D, {x, e.single(element, 0), e.single(element, 0)},
           {{"kernel", e.context().ints_attr(kernel)},
            {"stride", e.context().ints_attr(stride)},
            {"pad", e.context().ints_attr(SymDims(4, SymInt(0)))},
            {"acc_type", of(accumulator_of(element))}});
}

Value *bilinear(Emit &e) {
  Sizes s;
  if (!read(e, s))
    return nullptr;
  const bool corners = e.flag("align_corners");
  Value *x = e.transpose(e.arg(0), kToNhwc);
  Ratio ratio[2];
  bool plain = true;
  Dims times(4, 1); // one row or column is repeated: no weighting, whatever the corners are
  for (int i = 0; i < 2; ++i)
    if (s.in[i] == 1) {
      times[static_cast<size_t>(i) + 1] = s.out[i];
      s.out[i] = 1;
      s.scale[i] = 0;
    }
  for (int i = 0; i < 2; ++i) {
    const i64 in = s.in[i], out = s.out[i];
    const double exact = static_cast<double>(out) / static_cast<double>(in);
    if (corners)
      ratio[i] =
          out > 1 && in > 1 ? reduced(in, out, out - 1, in - 1, 0) : reduced(in, out, 1, 1, 0);
    else
      ratio[i] = reduced(in, out, 2 * out, 2 * in, in - out);
    plain = plain && ratio[i].fits() &&
            (corners || s.scale[i] <= 0 || std::abs(s.scale[i] - exact) <= 1e-6 * exact);
  }
  const bool alike = s.in[0] == s.out[0] && s.in[1] == s.out[1];
  if (plain && !alike)
    x = resize(e, x, ratio[0], ratio[1], "BILINEAR");
  else if (!alike && !corners && halves_evenly(s))
    x = mean_of_middle(e, x, s);
  else if (!alike)
    x = weighted(e, weighted(e, x, 1, s, corners), 2, s, corners);
  return e.transpose(e.tile(x, times), kToNchw);
}

} // namespace

void add_resize_rules(pass::PatternSet &set) {
  set.add("upsample-nearest", {a::upsample_nearest2d, a::upsample_nearest2d_vec}, lower<nearest>);
  set.add("upsample-bilinear", {a::upsample_bilinear2d, a::upsample_bilinear2d_vec},
          lower<bilinear>);
}

} // namespace chute::tosa

// max_pool2d and avg_pool2d on NHWC, with torch's ceil_mode, padding, dilation and divisors.
//
// AVG_POOL2D divides by the elements of the window that lie in the input. Zeros that torch counts
// are therefore padded explicitly, those that it does not count are the operator's own padding.
#include "tosa/legalize/conv.h"

#include <algorithm>
#include <limits>

namespace chute::tosa {

namespace {

namespace a = aten::op;

constexpr double kLowest = -std::numeric_limits<double>::infinity();

struct Pool {
  Value *x = nullptr; ///< NHWC
  Dims kernel, stride, pad, dilation, out;

  i64 in(size_t i) const { return x->type().dim(static_cast<int>(i) + 1).value(); }
};

/// Reads the window; null x after `unsupported`.
Pool read(Emit &e, bool dilated) {
  Pool p;
  Value *x = e.arg(0);
  p.kernel = e.ints("kernel_size", 2);
  p.pad = e.ints("padding", 2);
  p.stride = e.ints("stride", 2);
  if (p.stride.empty())
    p.stride = p.kernel;
  p.dilation = dilated ? e.ints("dilation", 2) : Dims{1, 1};
  if (!is_float(x)) {
    e.unsupported("of integers", "cast to float32 first");
    return p;
  }
  Dims in = static_dims(x);
  const Dims out = static_dims(e.type());
  p.out = {out[out.size() - 2], out.back()};
  if (in.size() == 3)
    in.insert(in.begin(), 1);
  p.x = e.transpose(e.reshape(x, in), kToNhwc);
  return p;
}

Value *back(Emit &e, Value *nhwc) {
  return e.reshape(e.transpose(nhwc, kToNchw), static_dims(e.type()));
}

/// Windows of both dimensions around `x`, whose ends that no window reaches are cut off.
SymDims fit(Emit &e, Pool &p) {
  SymDims pad;
  for (size_t i = 0; i < 2; ++i) {
    const Window w = window_of(p.in(i), p.out[i], p.kernel[i], p.stride[i], p.pad[i]);
    p.x = e.slice(p.x, static_cast<i64>(i) + 1, 0, p.in(i)-w.cut);
    pad.emplace_back(w.before);
    pad.emplace_back(w.after);
  }
  return pad;
}

Attr list(Emit &e, const Dims &v) {
  const SymDims values(v.begin(), v.end());
  return e.context().ints_attr(values);
}

Value *tap(Emit &e, const Pool &p, Value *x, size_t i, i64 k) {
  const i64 begin = k * p.dilation[i];
  return e.slice(x, static_cast<i64>(i) + 1, begin, begin + (p.out[i] - 1) * p.stride[i] + 1,
                 p.stride[i]);
}

/// `x` with the lowest value around it, as far as the taps reach.
Value *padded_low(Emit &e, const Pool &p) {
  Dims pairs(8, 0);
  for (size_t i = 0; i < 2; ++i) {
    const i64 extent = p.dilation[i] * (p.kernel[i] - 1) + 1;
    const Window w = window_of(p.in(i), p.out[i], extent, p.stride[i], p.pad[i]);
    pairs[2 * i + 2] = w.before;
    pairs[2 * i + 3] = w.after;
  }
  return e.pad(p.x, pairs, kLowest);
}

/// TOSA's pooling has no dilation: the maximum of the taps, rows first, then columns.
Value *max_of_taps(Emit &e, const Pool &p) {
  Value *x = padded_low(e, p);
  for (size_t i = 0; i < 2; ++i) {
    Value *best = nullptr;
    for (i64 k = 0; k < p.kernel[i]; ++k) {
      Value *t = tap(e, p, x, i, k);
      best = best ? e.binary(op::MAXIMUM, best, t) : t;
    }
    x = best;
  }
  return x;
}

Value *max_pool_nhwc(Emit &e, Pool p) {
  if (p.dilation != Dims{1, 1})
    return max_of_taps(e, p);
  const SymDims pad = fit(e, p);
  return e(op::MAX_POOL2D, {p.x},
           {{"kernel", list(e, p.kernel)},
            {"stride", list(e, p.stride)},
            {"pad", e.context().ints_attr(pad)}});
}

Value *max_pool(Emit &e) {
  const Pool p = read(e, true);
  return p.x ? back(e, max_pool_nhwc(e, p)) : nullptr;
}

/// The position of each window's first maximum in its input plane, tap by tap.
std::vector<Value *> max_pool_with_indices(Emit &e) {
  const Pool p = read(e, true);
  if (!p.x)
    return {};
  if (!e.op.result(1)->has_uses())
    return {back(e, max_pool_nhwc(e, p)), nullptr};
  Value *x = padded_low(e, p), *best = nullptr, *where = nullptr;
  for (i64 i = 0; i < p.kernel[0]; ++i)
    for (i64 j = 0; j < p.kernel[1]; ++j) {
      Value *t = tap(e, p, tap(e, p, x, 0, i), 1, j);
      Dims at;
      for (i64 r = 0; r < p.out[0]; ++r)
        for (i64 c = 0; c < p.out[1]; ++c)
          at.push_back((r * p.stride[0] - p.pad[0] + i * p.dilation[0]) * p.in(1) +
                       c * p.stride[1] - p.pad[1] + j * p.dilation[1]);
      Value *positions = e.i32s(Dims{1, p.out[0], p.out[1], 1}, at);
      if (!best) {
        best = t;
        where = e.broadcast(positions, static_dims(t));
        continue;
      }
      where = e.select(e.greater(t, best), positions, where);
      best = e.binary(op::MAXIMUM, best, t);
    }
  const Dims out = static_dims(e.type(1));
  return {back(e, best), e.cast(e.reshape(e.transpose(where, kToNchw), out), e.type(1).element())};
}

Value *avg_pool(Emit &e) {
  Pool p = read(e, false);
  if (!p.x)
    return nullptr;
  const Attr forced = e.attr("divisor_override");
  const bool padded = p.pad != Dims{0, 0};
  if (padded && (e.flag("count_include_pad") || !forced.is_none())) {
    Dims pairs(8, 0);
    for (size_t i = 0; i < 2; ++i) {
      // Zeros that no window reaches are not worth adding.
      const i64 reach = (p.out[i] - 1) * p.stride[i] + p.kernel[i] - p.in(i)-p.pad[i];
      pairs[2 * i + 2] = p.pad[i];
      pairs[2 * i + 3] = std::clamp<i64>(reach, 0, p.pad[i]);
    }
    p.x = e.pad(p.x, pairs);
    p.pad = {0, 0};
  }
  const SymDims pad = fit(e, p);
  const ElementType element = e.element();
  Value *y = e(op::AVG_POOL2D, {p.x, e.single(element, 0), e.single(element, 0)},
               {{"kernel", list(e, p.kernel)},
                {"stride", list(e, p.stride)},
                {"pad", e.context().ints_attr(pad)},
                {"acc_type", of(accumulator_of(element))}});
  if (forced.is_none())
    return back(e, y);
  // Times the elements that AVG_POOL2D divided by, over the divisor asked for.
  std::vector<double> factors;
  const auto count = [&](size_t i, i64 k) {
    const i64 begin = k * p.stride[i];
    return std::min(begin + p.kernel[i], p.in(i)) - begin;
  };
  for (i64 r = 0; r < p.out[0]; ++r)
    for (i64 c = 0; c < p.out[1]; ++c)
      factors.push_back(static_cast<double>(count(0, r) * count(1, c)) /
                        static_cast<double>(forced.as_int().value()));
  return back(e, e.mul(y, e.constant(element, Dims{1, p.out[0], p.out[1], 1}, factors)));
}

} // namespace

void add_pool_rules(pass::PatternSet &set) {
  set.add("max-pool", {a::max_pool2d}, lower<max_pool>);
  set.add("max-pool-with-indices", {a::max_pool2d_with_indices}, lower_many<max_pool_with_indices>);
  set.add("avg-pool", {a::avg_pool2d}, lower<avg_pool>);
}

} // namespace chute::tosa

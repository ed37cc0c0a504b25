// max_pool2d and avg_pool2d on NHWC, with torch's ceil_mode, padding, dilation and divisors.
//
// AVERAGE_POOL_2D divides by the elements of the window that lie in the input (SAME) or by all of
// them (VALID, after a PAD with zeros). Where torch divides by another number, the result is
// multiplied by the quotient, a constant of shape [1, H, W, 1] or a scalar.
#include "circle/legalize/window.h"

#include <algorithm>
#include <limits>

namespace chute::circle {

namespace {

namespace a = aten::op;

struct Pool {
  Value *x = nullptr; ///< NHWC
  Axis h, w;
};

/// Reads the window; null x after `unsupported`.
Pool read(Emit &e, bool dilated) {
  Pool p;
  Value *x = e.arg(0);
  const Dims kernel = e.ints("kernel_size", 2), pad = e.ints("padding", 2);
  Dims stride = e.ints("stride", 2);
  if (stride.empty())
    stride = kernel;
  const Dims dilation = dilated ? e.ints("dilation", 2) : Dims{1, 1};
  if (!ir::is_float(e.element())) {
    e.unsupported("of integers", "cast to float32 first");
    return p;
  }
  SymDims in(x->type().shape().begin(), x->type().shape().end());
  const std::span<const SymInt> out = e.type().shape();
  if (in.size() == 3) {
    in.insert(in.begin(), 1);
    x = e.reshape(x, in);
  }
  const bool dynamic = in[2].is_symbolic() || in[3].is_symbolic();
  if (dynamic && e.flag("ceil_mode")) {
    e.unsupported("with ceil_mode over a size known only at run time", "export with static shapes");
    return p;
  }
  p.h = {in[2], out[out.size() - 2], kernel[0], stride[0], pad[0], dilation[0]};
  p.w = {in[3], out[out.size() - 1], kernel[1], stride[1], pad[1], dilation[1]};
  p.x = x ? e.transpose(x, kToNhwc) : nullptr;
  return p;
}

Value *back(Emit &e, Value *nhwc) {
  return e.reshape(e.transpose(nhwc, kToNchw), e.type().shape());
}

Value *pool(Emit &e, OpCode code, const Pool &p, Value *x, std::string_view padding) {
  return e.typed(
      code, {x},
      {{"padding", e.str(padding)},
       {"stride_w", of(p.w.stride)},
       {"stride_h", of(p.h.stride)},
       {"filter_width", of(p.w.kernel)},
       {"filter_height", of(p.h.kernel)}},
      e.context().tensor_type(e.element(), {x->type().dim(0), p.h.out, p.w.out, x->type().dim(3)}));
}

/// Elements i * stride + offset of one spatial axis, as many as there are windows.
Value *tap(Emit &e, Value *x, i64 axis, const Axis &a, i64 k) {
  const i64 begin = k * a.dilation;
  return e.slice(x, axis, begin, begin + (a.out.value() - 1) * a.stride + 1, a.stride);
}

/// Circle's pooling has no dilation: the maximum of the taps, rows first, then columns.
Value *max_of_taps(Emit &e, Value *x, const Pool &p) {
  const auto along = [&](Value *v, i64 axis, const Axis &a) {
    Value *best = nullptr;
    for (i64 k = 0; k < a.kernel; ++k) {
      Value *t = tap(e, v, axis, a, k);
      best = best ? e(op::MAXIMUM, {best, t}) : t;
    }
    return best;
  };
  return along(along(x, 1, p.h), 2, p.w);
}

Value *padded_low(Emit &e, const Pool &p) {
  return e.pad(p.x, {0, 0, p.h.before, p.h.after(), p.w.before, p.w.after(), 0, 0},
               -std::numeric_limits<double>::infinity());
}

Value *max_pool_nhwc(Emit &e, const Pool &p) {
  const bool fixed = p.h.in.is_static() && p.w.in.is_static();
  if (p.h.dilation != 1 || p.w.dilation != 1)
    return fixed ? max_of_taps(e, padded_low(e, p), p)
                 : e.unsupported("dilated, over a size known only at run time",
                                 "export with static shapes");
  const Padding padding = choose_padding(p.h, p.w);
  Value *x = padding.pairs.empty()
                 ? p.x
                 : e.pad(p.x, padding.pairs, -std::numeric_limits<double>::infinity());
  return pool(e, op::MAX_POOL_2D, p, x, padding.name);
}

Value *max_pool(Emit &e) {
  const Pool p = read(e, true);
  Value *y = p.x ? max_pool_nhwc(e, p) : nullptr;
  return y ? back(e, y) : nullptr;
}

/// The position of each window's first maximum in its input plane, tap by tap.
std::vector<Value *> max_pool_with_indices(Emit &e) {
  const Pool p = read(e, true);
  if (!p.x)
    return {};
  if (!e.op.result(1)->has_uses()) {
    Value *y = max_pool_nhwc(e, p);
    return y ? std::vector<Value *>{back(e, y), nullptr} : std::vector<Value *>{};
  }
  if (p.h.in.is_symbolic() || p.w.in.is_symbolic()) {
    e.unsupported("with indices over a size known only at run time", "export with static shapes");
    return {};
  }
  Value *x = padded_low(e, p);
  const i64 rows = p.h.out.value(), columns = p.w.out.value();
  const ElementType index = e.type(1).element();
  Value *best = nullptr, *where = nullptr;
  for (i64 i = 0; i < p.h.kernel; ++i)
    for (i64 j = 0; j < p.w.kernel; ++j) {
      Value *t = tap(e, tap(e, x, 1, p.h, i), 2, p.w, j);
      Dims at;
      for (i64 r = 0; r < rows; ++r)
        for (i64 c = 0; c < columns; ++c)
          at.push_back((r * p.h.stride - p.h.before + i * p.h.dilation) * p.w.in.value() +
                       c * p.w.stride - p.w.before + j * p.w.dilation);
      const Dims plane{1, rows, columns, 1};
      Value *positions = e.constant_ints(index, plane, at);
      if (!best) {
        best = t;
        where = e(op::BROADCAST_TO, {positions, e.i32s(static_dims(t))});
        continue;
      }
      where = e.select(e(op::GREATER, {t, best}), positions, where);
      best = e(op::MAXIMUM, {best, t});
    }
  return {back(e, best), e.reshape(e.transpose(where, kToNchw), e.type(1).shape())};
}

/// Elements of window `i` inside [low, high).
i64 covered(const Axis &a, i64 i, i64 low, i64 high) {
  const i64 begin = i * a.stride - a.before;
  return std::min(begin + a.kernel, high) - std::max(begin, low);
}

Value *avg_pool(Emit &e) {
  Pool p = read(e, false);
  if (!p.x)
    return nullptr;
  const bool include = e.flag("count_include_pad");
  const Attr forced = e.attr("divisor_override");
  const bool no_padding = p.h.is_valid() && p.w.is_valid();
  const bool same = !no_padding && !include && forced.is_none() && p.h.is_same() && p.w.is_same();
  if (same)
    return back(e, pool(e, op::AVERAGE_POOL_2D, p, p.x, "SAME"));
  const bool fixed = p.h.in.is_static() && p.w.in.is_static();
  const bool partial = p.h.after() > p.h.before || p.w.after() > p.w.before; // by ceil_mode
  const bool plain = forced.is_none() && (no_padding || (include && !partial));
  if (!plain && !fixed)
    return e.unsupported("with these divisors over a size known only at run time",
                         "export with static shapes");
  Value *x = e.pad(p.x, {0, 0, p.h.before, p.h.after(), p.w.before, p.w.after(), 0, 0});
  Value *y = pool(e, op::AVERAGE_POOL_2D, p, x, "VALID");
  if (plain)
    return back(e, y);
  const i64 rows = p.h.out.value(), columns = p.w.out.value();
  const double window = static_cast<double>(p.h.kernel * p.w.kernel);
  std::vector<double> factors;
  for (i64 r = 0; r < rows; ++r)
    for (i64 c = 0; c < columns; ++c) {
      const auto count = [&](const Axis &a, i64 i) {
        const i64 margin = include ? a.before : 0;
        return covered(a, i, -margin, a.in.value() + margin);
      };
      const double divisor = forced.is_none() ? static_cast<double>(count(p.h, r) * count(p.w, c))
                                              : static_cast<double>(forced.as_int().value());
      factors.push_back(window / divisor);
    }
  const bool uniform = std::ranges::all_of(factors, [&](double f) { return f == factors.front(); });
  if (uniform && factors.front() == 1)
    return back(e, y);
  const Dims plane{1, rows, columns, 1};
  return back(
      e, e.mul(y, uniform ? e.like(y, factors.front()) : e.constant(e.element(), plane, factors)));
}

} // namespace

void add_pool_rules(pass::PatternSet &set) {
  set.add("max-pool", {a::max_pool2d}, lower<max_pool>);
  set.add("max-pool-with-indices", {a::max_pool2d_with_indices}, lower_many<max_pool_with_indices>);
  set.add("avg-pool", {a::avg_pool2d}, lower<avg_pool>);
}

} // namespace chute::circle

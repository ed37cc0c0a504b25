#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <limits>

// Pooling: two-dimensional windows over four-dimensional tensors; the others through view.
namespace chute::aten {

namespace {

using Ints = std::vector<i64>;

struct Pool {
  Ints kernel, stride, padding, dilation;
  bool ceil = false;
  bool count_include_pad = true;
  Attr divisor = {};
};

Pool read_pool(Emit &e, size_t n) {
  Pool p;
  p.kernel = e.ints("kernel_size", n);
  p.stride = e.ints("stride", n);
  if (p.stride.empty())
    p.stride = p.kernel;
  p.padding = e.ints("padding", n);
  const ir::OpDef &def = e.root().def();
  p.dilation = def.attr_index("dilation") >= 0 ? e.ints("dilation", n) : Ints(n, 1);
  p.ceil = e.flag("ceil_mode");
  if (def.attr_index("count_include_pad") >= 0)
    p.count_include_pad = e.flag("count_include_pad");
  if (def.attr_index("divisor_override") >= 0)
    p.divisor = e.attr("divisor_override");
  return p;
}

Attr list(Emit &e, const Ints &v) { return e.ctx().ints_attr(Shape(v.begin(), v.end())); }

/// A window of one dimension becomes [1, k].
Pool widen(Pool p) {
  p.kernel.insert(p.kernel.begin(), 1);
  p.stride.insert(p.stride.begin(), 1);
  p.padding.insert(p.padding.begin(), 0);
  p.dilation.insert(p.dilation.begin(), 1);
  return p;
}

V avg_pool(Emit &e, V x, const Pool &p) {
  return e.op(op::avg_pool2d, {x},
              {{"kernel_size", list(e, p.kernel)},
               {"stride", list(e, p.stride)},
               {"padding", list(e, p.padding)},
               {"ceil_mode", Attr::of_bool(p.ceil)},
               {"count_include_pad", Attr::of_bool(p.count_include_pad)},
               {"divisor_override", p.divisor}});
}

Values max_pool(Emit &e, V x, const Pool &p, bool indices) {
  ir::Op *y = e.multi(indices ? op::max_pool2d_with_indices : op::max_pool2d, {x},
                      {{"kernel_size", list(e, p.kernel)},
                       {"stride", list(e, p.stride)},
                       {"padding", list(e, p.padding)},
                       {"dilation", list(e, p.dilation)},
                       {"ceil_mode", Attr::of_bool(p.ceil)}});
  if (!y)
    return {};
  return {y->result(0), indices ? y->result(1) : nullptr};
}

/// [N, C, spatial…] with `n` spatial dimensions as [.., 1, L] or [1, C, H, W].
V to_4d(Emit &e, V x, size_t n) {
  Shape s = e.shape_of(x);
  if (n == 1)
    s.insert(s.end() - 1, 1);
  while (s.size() < 4)
    s.insert(s.begin(), 1);
  return e.view(x, s);
}

bool full_lists(Emit &e, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (e.sizes(name).size() != 2)
      return false;
  return e.in()->type().rank() == 4;
}

/// How many elements PyTorch divides by in each window of a row of `out` windows over `n` elements.
std::vector<double> window_counts(const Pool &p, size_t d, i64 n, i64 out) {
  std::vector<double> counts;
  for (i64 i = 0; i < out; ++i) {
    i64 from = i * p.stride[d] - p.padding[d];
    i64 to = std::min(from + p.kernel[d], n + p.padding[d]);
    if (!p.count_include_pad) {
      from = std::max<i64>(from, 0);
      to = std::min(to, n);
    }
    counts.push_back(double(std::max<i64>(to - from, 1)));
  }
  return counts;
}

/// What is made of the windows one tap of all of them at a time, so that the work is the kernel's
/// size, not the number of windows.
enum class Taps : u8 { Max, Sum };

/// The reduction of each window over the last `n` dimensions and, of a maximum, the place of the
/// element among them. Empty over sizes that are not static.
Values pool_taps(Emit &e, const Pool &p, size_t n, Taps what) {
  V x = e.up(e.in());
  const size_t first = size_t(x->type().rank()) - n;
  const Shape in = e.shape_of(x), out = e.shape();
  Ints sizes, windows, amounts;
  for (size_t d = first; d < in.size(); ++d) {
    if (in[d].is_symbolic() || out[d].is_symbolic())
      return e.reject("pooling of integers, or indices of a pool, over a size that is not static"),
             Values{};
    sizes.push_back(in[d].value());
    windows.push_back(out[d].value());
  }
  for (size_t d = n; d-- > 0;) {
    const i64 reach = (windows[d] - 1) * p.stride[d] + (p.kernel[d] - 1) * p.dilation[d] + 1;
    amounts.push_back(p.padding[d]);
    amounts.push_back(std::max<i64>(reach - p.padding[d] - sizes[d], 0));
  }
  const ElementType element = x->type().element();
  Attr border = Attr::of_int(0);
  if (what == Taps::Max)
    border = ir::is_float(element)    ? Attr::of_float(-std::numeric_limits<double>::infinity())
             : ir::is_signed(element) ? Attr::of_int(i64(-1) << (ir::element_bits(element) - 1))
                                      : border;
  x = e.pad(x, amounts, border);
  i64 taps = 1, count = 1;
  for (size_t d = 0; d < n; ++d) {
    taps *= p.kernel[d];
    count *= windows[d];
  }
  V best = nullptr, at = nullptr;
  for (i64 tap = 0; tap < taps; ++tap) {
    Ints offset(n, 0);
    i64 rest = tap;
    for (size_t d = n; d-- > 0; rest /= p.kernel[d])
      offset[d] = rest % p.kernel[d] * p.dilation[d];
    V value = x;
    for (size_t d = 0; d < n; ++d)
      value = e.slice(value, int(first + d), offset[d],
                      offset[d] + (windows[d] - 1) * p.stride[d] + 1, p.stride[d]);
    if (what == Taps::Sum) {
      best = best ? e.add(best, value) : value;
      continue;
    }
    std::vector<double> places(size_t(count), 0);
    for (i64 i = 0; i < count; ++i) {
      i64 left = i, scale = 1;
      for (size_t d = n; d-- > 0; left /= windows[d], scale *= sizes[d])
        places[size_t(i)] +=
            double(scale * (left % windows[d] * p.stride[d] - p.padding[d] + offset[d]));
    }
    V here = e.expand(e.constant(ElementType::I64, windows, places), out);
    V larger = best ? e.gt(value, best) : nullptr;
    at = best ? e.where(larger, here, at) : here;
    best = best ? e.where(larger, value, best) : value;
  }
  return {best, at};
}

bool of_integers(Emit &e) { return ir::is_integer(e.in()->type().element()); }

/// Integer pools: targets have them of reals and of quantized numbers only.
Values max_pool_integers(Emit &e, size_t n) {
  Values y = pool_taps(e, read_pool(e, n), n, Taps::Max);
  if (!y.empty())
    y.resize(e.root().num_results());
  return y;
}

V avg_pool_integers(Emit &e, size_t n) {
  const Pool p = read_pool(e, n);
  const Values y = pool_taps(e, p, n, Taps::Sum);
  if (y.empty())
    return nullptr;
  V sums = y[0];
  const Shape in = e.shape_of(e.in()), out = e.shape();
  std::vector<double> counts{1};
  Ints shape(out.size(), 1);
  for (size_t d = 0; d < n; ++d) {
    const size_t at = out.size() - n + d;
    shape[at] = out[at].value();
    std::vector<double> next;
    for (const double c : counts)
      for (const double w : window_counts(p, d, in[at].value(), out[at].value()))
        next.push_back(c * w);
    counts = std::move(next);
  }
  if (!p.divisor.is_none())
    std::ranges::fill(counts, double(p.divisor.as_int().value()));
  return e.op(op::div_Tensor_mode, {sums, e.constant(sums->type().element(), shape, counts)},
              {{"rounding_mode", e.ctx().string_attr("trunc")}});
}

V avg_pool_2d(Emit &e) {
  if (of_integers(e))
    return avg_pool_integers(e, 2);
  if (full_lists(e, {"kernel_size", "stride", "padding"}))
    return nullptr;
  return e.view(avg_pool(e, to_4d(e, e.in(), 2), read_pool(e, 2)), e.shape());
}

Values max_pool_2d(Emit &e) {
  const bool has_indices = e.root().opcode() == op::max_pool2d_with_indices;
  const bool indices = has_indices && e.used(1);
  if (of_integers(e))
    return max_pool_integers(e, 2);
  if (full_lists(e, {"kernel_size", "stride", "padding", "dilation"}) && indices == has_indices)
    return {};
  Values y = max_pool(e, to_4d(e, e.in(), 2), read_pool(e, 2), indices);
  if (y.empty())
    return {};
  y[0] = e.view(y[0], e.shape());
  if (indices)
    y[1] = e.view(y[1], e.shape(1));
  y.resize(e.root().num_results());
  return y;
}

Values max_pool_1d(Emit &e) {
  if (of_integers(e))
    return max_pool_integers(e, 1);
  const bool indices = e.root().num_results() == 2 && e.used(1);
  Values y = max_pool(e, to_4d(e, e.in(), 1), widen(read_pool(e, 1)), indices);
  if (y.empty())
    return {};
  y[0] = e.view(y[0], e.shape());
  // With one row, an index into the plane is an index into the row.
  if (indices)
    y[1] = e.view(y[1], e.shape(1));
  y.resize(e.root().num_results());
  return y;
}

/// Divides sums of three-dimensional windows by the number of their elements.
V divide_by_counts(Emit &e, V sums, const Pool &p) {
  if (!p.divisor.is_none())
    return e.div(sums, double(p.divisor.as_int().value()));
  const Shape in = e.shape_of(e.in()), out = e.shape();
  const size_t rank = out.size();
  for (size_t d = 0; d < 3; ++d) {
    const SymInt n = in[rank - 3 + d], m = out[rank - 3 + d];
    if (n.is_symbolic() || m.is_symbolic())
      return e.reject("three-dimensional average pooling whose windows differ, over a size that "
                      "is not static");
    std::vector<i64> shape(rank, 1);
    shape[rank - 3 + d] = m.value();
    sums = e.div(
        sums, e.constant(sums->type().element(), shape, window_counts(p, d, n.value(), m.value())));
  }
  return sums;
}

V pool_integers_3d(Emit &e, bool max) {
  if (!max)
    return avg_pool_integers(e, 3);
  const Values y = pool_taps(e, read_pool(e, 3), 3, Taps::Max);
  return y.empty() ? nullptr : y[0];
}

/// Three-dimensional windows are separable: planes first, then depth.
V pool_3d(Emit &e, bool max) {
  if (of_integers(e))
    return pool_integers_3d(e, max);
  const Pool p = read_pool(e, 3);
  V x = e.in();
  const Shape in = e.shape_of(x), out = e.shape();
  const bool sums = !max && (!p.count_include_pad || !p.divisor.is_none() || p.ceil);
  const size_t lead = in.size() - 3;
  SymInt outer = 1;
  for (size_t i = 0; i < lead; ++i)
    outer = e.sym().mul(outer, in[i]);
  const auto part = [&](const Ints &v, size_t from) {
    return Ints(v.begin() + i64(from), v.end());
  };
  Pool plane{part(p.kernel, 1), part(p.stride, 1), part(p.padding, 1), part(p.dilation, 1), p.ceil};
  Pool depth{{p.kernel[0], 1}, {p.stride[0], 1}, {p.padding[0], 0}, {p.dilation[0], 1}, p.ceil};
  if (sums) {
    x = e.up(x);
    plane.divisor = depth.divisor = Attr::of_int(1);
  }
  const auto run = [&](V v, const Pool &q) {
    if (!max)
      return avg_pool(e, v, q);
    const Values y = max_pool(e, v, q, false);
    return y.empty() ? v : y[0];
  };
  V y = run(e.view(x, {outer, in[lead], in[lead + 1], in[lead + 2]}), plane);
  const SymInt area = e.sym().mul(out[lead + 1], out[lead + 2]);
  y = run(e.view(y, {1, outer, in[lead], area}), depth);
  y = e.view(y, out);
  return sums ? divide_by_counts(e, y, p) : y;
}

/// One dimension of an adaptive pool whose windows differ: output i covers
/// [floor(i*n/m), ceil((i+1)*n/m)).
V adaptive_dim(Emit &e, V x, int dim, i64 m, bool max) {
  const i64 n = x->type().dim(dim).value();
  Values parts;
  for (i64 i = 0; i < m; ++i) {
    V window = e.slice(x, dim, i * n / m, ((i + 1) * n + m - 1) / m);
    parts.push_back(max ? e.amax(window, {dim}, true) : e.mean(window, {dim}, true));
  }
  return e.cat(parts, dim);
}

V adaptive(Emit &e, size_t n, bool max) {
  V x = e.in();
  const int rank = x->type().rank(), first = rank - int(n);
  for (int d = first; d < rank; ++d)
    if (e.type().dim(d) == SymInt(0))
      return e.full(e.shape(), 0.0, e.type().element());
  Axes to_one, rest;
  Ints kernel(n, 1);
  bool even = n <= 2;
  for (int d = first; d < rank; ++d) {
    const SymInt in = x->type().dim(d), out = e.type().dim(d);
    if (out == SymInt(1)) {
      to_one.push_back(d);
      kernel[size_t(d - first)] = in.is_static() ? in.value() : 0;
      continue;
    }
    if (in == out)
      continue;
    if (in.is_symbolic() || out.is_symbolic())
      return e.reject("an adaptive pool over a size that is not static");
    rest.push_back(d);
    even &= in.value() % out.value() == 0;
    kernel[size_t(d - first)] = in.value() / out.value();
  }
  if (rest.empty())
    return to_one.empty() ? x : max ? e.amax(x, to_one, true) : e.mean(x, to_one, true);
  for (i64 k : kernel)
    even &= k > 0;
  if (even) {
    Pool p{kernel, kernel, Ints(n, 0), Ints(n, 1)};
    if (n == 1)
      p = widen(p);
    V y = to_4d(e, x, n);
    if (!max)
      return e.view(avg_pool(e, y, p), e.shape());
    const Values m = max_pool(e, y, p, false);
    return m.empty() ? nullptr : e.view(m[0], e.shape());
  }
  for (int d : rest)
    x = adaptive_dim(e, x, d, e.type().dim(d).value(), max);
  if (!to_one.empty())
    x = max ? e.amax(x, to_one, true) : e.mean(x, to_one, true);
  return x;
}

/// Where the largest element of each window lies among the last `n` dimensions of the input.
V adaptive_indices(Emit &e, size_t n) {
  V x = e.up(e.in());
  const size_t first = size_t(x->type().rank()) - n;
  const Shape in = e.shape_of(x), out = e.shape();
  const Shape lead(in.begin(), in.begin() + i64(first));
  i64 windows = 1;
  for (size_t d = first; d < in.size(); ++d) {
    if (in[d].is_symbolic() || out[d].is_symbolic())
      return e.reject("indices of an adaptive max pool over a size that is not static");
    windows *= out[d].value();
  }
  Values parts;
  for (i64 w = 0; w < windows; ++w) {
    V window = x;
    Ints places{0}; // of the window's elements, in their order
    i64 inner = windows;
    for (size_t d = first; d < in.size(); ++d) {
      const i64 size = in[d].value(), m = out[d].value();
      inner /= m;
      const i64 i = w / inner % m, from = i * size / m, to = ((i + 1) * size + m - 1) / m;
      window = e.slice(window, int(d), from, to);
      Ints next;
      for (const i64 place : places)
        for (i64 at = from; at < to; ++at)
          next.push_back(place * size + at);
      places = std::move(next);
    }
    Shape flat = lead, one = lead;
    flat.push_back(i64(places.size()));
    one.push_back(1);
    V at = e.op(op::argmax, {e.view(window, flat)},
                {{"dim", Attr::of_int(i64(first))}, {"keepdim", Attr::of_bool(false)}});
    at = e.index_select(e.i64s(places), 0, e.view(at, {e.mul_sizes(lead)}));
    parts.push_back(e.view(at, one));
  }
  return parts.empty() ? e.full(out, 0.0, ElementType::I64) : e.view(e.cat(parts, int(first)), out);
}

template <size_t N>
Values adaptive_max(Emit &e) {
  V y = adaptive(e, N, true);
  return y ? Values{y, e.used(1) ? adaptive_indices(e, N) : nullptr} : Values{};
}

} // namespace

void add_pooling_rules(pass::PatternSet &set) {
  set.add("avg-pool-1d", {op::avg_pool1d}, rule<[](Emit &e) {
            if (of_integers(e))
              return avg_pool_integers(e, 1);
            return e.view(avg_pool(e, to_4d(e, e.in(), 1), widen(read_pool(e, 1))), e.shape());
          }>);
  set.add("avg-pool-2d", {op::avg_pool2d}, rule<avg_pool_2d>);
  set.add("avg-pool-3d", {op::avg_pool3d}, rule<[](Emit &e) { return pool_3d(e, false); }>);
  set.add("max-pool-1d", {op::max_pool1d, op::max_pool1d_with_indices}, rule<max_pool_1d>);
  set.add("max-pool-2d", {op::max_pool2d, op::max_pool2d_with_indices}, rule<max_pool_2d>);
  set.add("max-pool-3d", {op::max_pool3d}, rule<[](Emit &e) { return pool_3d(e, true); }>);
  set.add("max-pool-3d-indices", {op::max_pool3d_with_indices}, rule<[](Emit &e) -> Values {
            if (!e.used(1))
              return {pool_3d(e, true), nullptr};
            return pool_taps(e, read_pool(e, 3), 3, Taps::Max);
          }>);
  set.add("adaptive-avg-1d", {op::adaptive_avg_pool1d},
          rule<[](Emit &e) { return adaptive(e, 1, false); }>);
  set.add("adaptive-avg-2d", {op::adaptive_avg_pool2d, op::u_adaptive_avg_pool2d},
          rule<[](Emit &e) { return adaptive(e, 2, false); }>);
  set.add("adaptive-avg-3d", {op::adaptive_avg_pool3d, op::u_adaptive_avg_pool3d},
          rule<[](Emit &e) { return adaptive(e, 3, false); }>);
  set.add("adaptive-max-1d", {op::adaptive_max_pool1d}, rule<adaptive_max<1>>);
  set.add("adaptive-max-2d", {op::adaptive_max_pool2d}, rule<adaptive_max<2>>);
  set.add("adaptive-max-3d", {op::adaptive_max_pool3d}, rule<adaptive_max<3>>);
}

} // namespace chute::aten

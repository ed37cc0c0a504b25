#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

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

V avg_pool_2d(Emit &e) {
  if (full_lists(e, {"kernel_size", "stride", "padding"}))
    return nullptr;
  return e.view(avg_pool(e, to_4d(e, e.in(), 2), read_pool(e, 2)), e.shape());
}

Values max_pool_2d(Emit &e) {
  const bool has_indices = e.root().opcode() == op::max_pool2d_with_indices;
  const bool indices = has_indices && e.used(1);
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

/// Three-dimensional windows are separable: planes first, then depth.
V pool_3d(Emit &e, bool max) {
  const Pool p = read_pool(e, 3);
  V x = e.in();
  const Shape in = e.shape_of(x), out = e.shape();
  if (!max && (!p.count_include_pad || !p.divisor.is_none() || p.ceil))
    return e.reject("three-dimensional average pooling that leaves padding out of the count");
  const size_t lead = in.size() - 3;
  SymInt outer = 1;
  for (size_t i = 0; i < lead; ++i)
    outer = e.sym().mul(outer, in[i]);
  const auto part = [&](const Ints &v, size_t from) {
    return Ints(v.begin() + i64(from), v.end());
  };
  Pool plane{part(p.kernel, 1), part(p.stride, 1), part(p.padding, 1), part(p.dilation, 1), p.ceil};
  Pool depth{{p.kernel[0], 1}, {p.stride[0], 1}, {p.padding[0], 0}, {p.dilation[0], 1}, p.ceil};
  const auto run = [&](V v, const Pool &q) {
    if (!max)
      return avg_pool(e, v, q);
    const Values y = max_pool(e, v, q, false);
    return y.empty() ? v : y[0];
  };
  V y = run(e.view(x, {outer, in[lead], in[lead + 1], in[lead + 2]}), plane);
  const SymInt area = e.sym().mul(out[lead + 1], out[lead + 2]);
  y = run(e.view(y, {1, outer, in[lead], area}), depth);
  return e.view(y, out);
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

template <size_t N>
Values adaptive_max(Emit &e) {
  if (e.used(1))
    return e.reject("indices of an adaptive max pool are used"), Values{};
  V y = adaptive(e, N, true);
  return y ? Values{y, nullptr} : Values{};
}

} // namespace

void add_pooling_rules(pass::PatternSet &set) {
  set.add("avg-pool-1d", {op::avg_pool1d}, rule<[](Emit &e) {
            return e.view(avg_pool(e, to_4d(e, e.in(), 1), widen(read_pool(e, 1))), e.shape());
          }>);
  set.add("avg-pool-2d", {op::avg_pool2d}, rule<avg_pool_2d>);
  set.add("avg-pool-3d", {op::avg_pool3d}, rule<[](Emit &e) { return pool_3d(e, false); }>);
  set.add("max-pool-1d", {op::max_pool1d, op::max_pool1d_with_indices}, rule<max_pool_1d>);
  set.add("max-pool-2d", {op::max_pool2d, op::max_pool2d_with_indices}, rule<max_pool_2d>);
  set.add("max-pool-3d", {op::max_pool3d}, rule<[](Emit &e) { return pool_3d(e, true); }>);
  set.add("max-pool-3d-indices", {op::max_pool3d_with_indices}, rule<[](Emit &e) -> Values {
            if (e.used(1))
              return e.reject("indices of a three-dimensional max pool are used"), Values{};
            return {pool_3d(e, true), nullptr};
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

#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

// Every convolution is aten.convolution with symmetric padding; what is not symmetric is padded
// first.
namespace chute::aten {

namespace {

struct Window {
  std::vector<i64> stride, padding, dilation, output_padding;
  bool transposed = false;
  SymInt groups = 1;
};

V convolve(Emit &e, V x, const Window &w) {
  const auto list = [&](const std::vector<i64> &v) {
    return e.ctx().ints_attr(Shape(v.begin(), v.end()));
  };
  // Without a batch dimension the input has one dimension less than the weight.
  const bool single = x->type().rank() < e.in(1)->type().rank();
  if (single)
    x = e.unsqueeze(x, 0);
  V y = e.op(op::convolution, {x, e.in(1), e.in(2)},
             {{"stride", list(w.stride)},
              {"padding", list(w.padding)},
              {"dilation", list(w.dilation)},
              {"transposed", Attr::of_bool(w.transposed)},
              {"output_padding", list(w.output_padding)},
              {"groups", Attr::of_int(w.groups)}});
  return single ? e.squeeze(y, 0) : y;
}

/// Transposed over three dimensions: the convolution of the input with zeros put between its
/// elements, by the mirrored weights. (Two dimensions have an operator of their own on targets.)
V spread_convolution(Emit &e, V x, const Window &w) {
  V weight = e.in(1);
  const size_t n = w.stride.size();
  if (!x->type().has_static_shape() || !weight->type().has_static_shape() || w.groups.is_symbolic())
    return e.reject("a transposed convolution over a shape that is not static");
  const bool single = x->type().rank() < weight->type().rank();
  if (single)
    x = e.unsqueeze(x, 0);
  std::vector<i64> around;
  for (size_t i = n; i-- > 0;) {
    const int d = int(i) + 2;
    const i64 size = x->type().dim(d).value(), stride = w.stride[i];
    if (stride > 1) {
      std::vector<i64> zeros(2 * (size_t(x->type().rank()) - size_t(d)), 0);
      zeros.back() = stride - 1; // after each element, in a dimension of its own
      V apart = e.pad(e.unsqueeze(x, d + 1), zeros, Attr::of_float(0));
      Shape joined = e.shape_of(x);
      joined[size_t(d)] = size * stride;
      x = e.slice(e.view(apart, joined), d, 0, size * stride - stride + 1);
    }
    const i64 reach = w.dilation[i] * (weight->type().dim(d).value() - 1) - w.padding[i];
    around.push_back(reach);
    around.push_back(reach + w.output_padding[i]);
  }
  x = e.pad(x, around, Attr::of_float(0));
  // [in, out / groups, ..] to [out, in / groups, ..], each group for itself.
  const i64 groups = w.groups.value();
  Shape by_group = e.shape_of(weight);
  const i64 in = by_group[0].value() / groups, out = by_group[1].value();
  by_group[0] = in;
  by_group.insert(by_group.begin(), groups);
  Axes order = e.all_dims(int(by_group.size())), mirrored;
  std::swap(order[1], order[2]);
  Shape merged(by_group.begin() + 1, by_group.end());
  merged[0] = groups * out, merged[1] = in;
  for (size_t i = 0; i < n; ++i)
    mirrored.push_back(int(i) + 2);
  weight = e.flip(e.view(e.permute(e.view(weight, by_group), order), merged), mirrored);
  const auto same = [&](i64 v) { return e.ctx().ints_attr(Shape(n, SymInt(v))); };
  V y = e.op(op::convolution, {x, weight, e.in(2)},
             {{"stride", same(1)},
              {"padding", same(0)},
              {"dilation", e.ctx().ints_attr(Shape(w.dilation.begin(), w.dilation.end()))},
              {"transposed", Attr::of_bool(false)},
              {"output_padding", same(0)},
              {"groups", Attr::of_int(w.groups)}});
  return single ? e.squeeze(y, 0) : y;
}

size_t spatial(Emit &e) { return size_t(e.in(1)->type().rank() - 2); }

V conv(Emit &e) {
  const size_t n = spatial(e);
  Window w{e.ints("stride", n),
           e.ints("padding", n),
           e.ints("dilation", n),
           std::vector<i64>(n, 0),
           false,
           e.size("groups")};
  return convolve(e, e.in(), w);
}

V conv_transpose(Emit &e) {
  const size_t n = spatial(e);
  Window w{e.ints("stride", n),
           e.ints("padding", n),
           e.ints("dilation", n),
           e.ints("output_padding", n),
           true,
           e.size("groups")};
  return n == 3 ? spread_convolution(e, e.in(), w) : convolve(e, e.in(), w);
}

/// padding "same": total d*(k-1) per dimension, the odd one at the end; "valid": none.
V conv_named_padding(Emit &e) {
  const size_t n = spatial(e);
  const std::string_view mode = e.attr("padding").as_string();
  Window w{e.ints("stride", n),
           std::vector<i64>(n, 0),
           e.ints("dilation", n),
           std::vector<i64>(n, 0),
           false,
           e.size("groups")};
  V x = e.in();
  if (mode == "same") {
    std::vector<i64> before_after(2 * n, 0);
    for (size_t i = 0; i < n; ++i) {
      const SymInt k = e.in(1)->type().dim(int(i) + 2);
      if (k.is_symbolic())
        return e.reject("a kernel size that is not static");
      const i64 total = w.dilation[i] * (k.value() - 1);
      w.padding[i] = total / 2;
      before_after[2 * (n - 1 - i) + 1] = total % 2;
    }
    x = e.pad(x, before_after, Attr::of_float(0));
  } else if (mode != "valid") {
    return e.reject("an unknown padding mode");
  }
  return convolve(e, x, w);
}

V convolution(Emit &e) {
  const size_t n = spatial(e);
  const bool spread = n == 3 && e.flag("transposed");
  const bool canonical = !spread && e.root().opcode() == op::convolution &&
                         e.in()->type().rank() == e.in(1)->type().rank() &&
                         e.sizes("stride").size() == n && e.sizes("padding").size() == n &&
                         e.sizes("dilation").size() == n && e.sizes("output_padding").size() == n;
  if (canonical)
    return nullptr;
  Window w{e.ints("stride", n),         e.ints("padding", n), e.ints("dilation", n),
           e.ints("output_padding", n), e.flag("transposed"), e.size("groups")};
  return spread ? spread_convolution(e, e.in(), w) : convolve(e, e.in(), w);
}

/// Patches as columns: [N, C, H, W] to [N, C*kh*kw, L].
V im2col(Emit &e) {
  V x = e.in();
  const auto k = e.ints("kernel_size", 2), d = e.ints("dilation", 2), p = e.ints("padding", 2),
             s = e.ints("stride", 2);
  const bool single = x->type().rank() == 3;
  if (single)
    x = e.unsqueeze(x, 0);
  x = e.pad(x, {p[1], p[1], p[0], p[0]}, Attr::of_float(0));
  if (!x->type().has_static_shape())
    return e.reject("patches of a tensor whose size is not static");
  const i64 batch = x->type().dim(0).value(), channels = x->type().dim(1).value();
  std::vector<i64> count(2);
  for (int i = 0; i < 2; ++i) {
    // [.., size, ..] to [.., k, count, ..]
    const int at = i == 0 ? 2 : 4;
    const i64 size = x->type().dim(at).value();
    count[size_t(i)] = (size - d[size_t(i)] * (k[size_t(i)] - 1) - 1) / s[size_t(i)] + 1;
    std::vector<i64> rows;
    for (i64 a = 0; a < k[size_t(i)]; ++a)
      for (i64 w = 0; w < count[size_t(i)]; ++w)
        rows.push_back(a * d[size_t(i)] + w * s[size_t(i)]);
    Shape shape = e.shape_of(x);
    shape[size_t(at)] = k[size_t(i)];
    shape.insert(shape.begin() + at + 1, count[size_t(i)]);
    x = e.view(e.index_select(x, at, e.i64s(rows)), shape);
  }
  x = e.permute(x, {0, 1, 2, 4, 3, 5}); // N C kh kw H W
  V y = e.view(x, {batch, channels * k[0] * k[1], count[0] * count[1]});
  return single ? e.squeeze(y, 0) : y;
}

} // namespace

void add_convolution_rules(pass::PatternSet &set) {
  set.add("conv", {op::conv1d, op::conv2d, op::conv3d}, rule<conv>);
  set.add("conv-padding", {op::conv1d_padding, op::conv2d_padding, op::conv3d_padding},
          rule<conv_named_padding>);
  set.add("conv-transpose",
          {op::conv_transpose1d, op::conv_transpose2d_input, op::conv_transpose3d_input},
          rule<conv_transpose>);
  set.add("convolution", {op::convolution, op::u_convolution}, rule<convolution>);
  set.add("im2col", {op::im2col}, rule<im2col>);
}

} // namespace chute::aten

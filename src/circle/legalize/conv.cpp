// convolution (1, 2 and 3 spatial dimensions, grouped, depthwise, dilated, transposed) on NHWC.
//
// 1-D runs as 2-D with height 1. 3-D gathers the kernel's frames side by side in the channels (one
// slice per frame) and runs one 2-D convolution over all output frames as a batch. Groups other
// than depthwise are separate convolutions over slices of the channels: no runtime has a grouped
// CONV_2D.
#include "circle/legalize/window.h"
#include "ir/sym_table.h"

namespace chute::circle {

namespace {

namespace a = aten::op;

struct Conv {
  Dims stride, pad, dilation, output_pad;
  i64 groups = 1;
};

SymDims dims_of(const Value *v) { return {v->type().shape().begin(), v->type().shape().end()}; }

/// The `part`-th of `parts` equal slices along `axis`.
Value *part_of(Emit &e, Value *v, i64 axis, i64 part, i64 parts) {
  const i64 size = v->type().dim(static_cast<int>(axis)).value() / parts;
  return e.slice(v, axis, part * size, (part + 1) * size);
}

std::vector<Value *> split(Emit &e, Value *x, i64 axis, i64 parts) {
  SymDims shape = dims_of(x);
  SymInt &d = shape[static_cast<size_t>(axis)];
  d = d.value() / parts;
  const std::vector<Type> types(static_cast<size_t>(parts),
                                e.context().tensor_type(x->type().element(), shape));
  Value *operands[] = {e.i32(axis), x};
  const NamedAttr n{"num_splits", of(parts)};
  ir::Op *s = e.typed(op::SPLIT, operands, std::span(&n, 1), types);
  std::vector<Value *> out;
  for (Value &v : s->results())
    out.push_back(&v);
  return out;
}

Value *bias_or_zeros(Emit &e, Value *bias, SymInt channels, ElementType element) {
  if (bias)
    return bias;
  const std::vector<double> zeros(static_cast<size_t>(channels.value()), 0.0);
  const i64 n = channels.value();
  return e.constant(element, std::span(&n, 1), zeros);
}

SymInt out_size(Emit &e, SymInt in, i64 kernel, i64 stride, i64 pad, i64 dilation) {
  ir::SymTable &sym = e.context().sym();
  return sym.add(sym.floordiv(sym.add(in, 2 * pad - dilation * (kernel - 1) - 1), stride), 1);
}

/// x: NHWC; w: OIHW; result NHWC.
Value *conv_2d(Emit &e, Value *x, Value *w, Value *bias, const Conv &c) {
  const SymInt outs = w->type().dim(0), ins = x->type().dim(3);
  if (c.groups > 1 && !(ins == SymInt(c.groups) && w->type().dim(1) == SymInt(1))) {
    std::vector<Value *> parts = split(e, x, 3, c.groups);
    Conv one = c;
    one.groups = 1;
    for (i64 g = 0; g < c.groups; ++g) {
      auto &p = parts[static_cast<size_t>(g)];
      p = conv_2d(e, p, part_of(e, w, 0, g, c.groups),
                  bias ? part_of(e, bias, 0, g, c.groups) : nullptr, one);
    }
    return e.concat(parts, 3);
  }
  const auto axis = [&](size_t i) {
    const SymInt in = x->type().dim(static_cast<int>(i) + 1);
    const i64 kernel = w->type().dim(static_cast<int>(i) + 2).value();
    return Axis{in,       out_size(e, in, kernel, c.stride[i], c.pad[i], c.dilation[i]),
                kernel,   c.stride[i],
                c.pad[i], c.dilation[i]};
  };
  const Axis h = axis(0), v = axis(1);
  const Padding padding = choose_padding(h, v);
  const Type type = e.context().tensor_type(e.element(), {x->type().dim(0), h.out, v.out, outs});
  if (!padding.pairs.empty())
    x = e.pad(x, padding.pairs);
  bias = bias_or_zeros(e, bias, outs, e.element());
  const NamedAttr name{"padding", e.str(padding.name)};
  const NamedAttr sw{"stride_w", of(c.stride[1])}, sh{"stride_h", of(c.stride[0])};
  const NamedAttr dw{"dilation_w_factor", of(c.dilation[1])},
      dh{"dilation_h_factor", of(c.dilation[0])};
  if (c.groups > 1) {
    const NamedAttr multiplier{"depth_multiplier", of(outs.value() / ins.value())};
    return e.typed(op::DEPTHWISE_CONV_2D, {x, e.transpose(w, {1, 2, 3, 0}), bias},
                   {name, sw, sh, dw, dh, multiplier}, type);
  }
  return e.typed(op::CONV_2D, {x, e.transpose(w, {0, 2, 3, 1}), bias}, {name, sw, sh, dw, dh},
                 type);
}

/// Zeros between the taps of a kernel [I, O, H, W], for dilated transposed convolutions.
Value *spread(Emit &e, Value *w, const Dims &dilation) {
  if (dilation[0] == 1 && dilation[1] == 1)
    return w;
  const ir::Constant *c = constant_of(w);
  if (c && c->has_data)
    return e.constant(pass::spread(e.graph(), *c, dilation));
  for (size_t i = 0; i < 2; ++i) {
    Dims shape = static_dims(w);
    i64 &taps = shape[i + 2];
    const i64 outer = shape[0] * shape[1] * (i ? shape[2] : 1), inner = i ? 1 : shape[3];
    const i64 reach = (taps - 1) * dilation[i] + 1;
    w = e.reshape(w, Dims{outer, taps, 1, inner});
    w = e.pad(w, {0, 0, 0, 0, 0, dilation[i] - 1, 0, 0});
    taps *= dilation[i];
    w = e.slice(e.reshape(w, shape), static_cast<i64>(i) + 2, 0, reach, 1);
  }
  return w;
}

/// x: NHWC; w: [I, O, H, W]; result NHWC. VALID over the uncropped output, then the padding cut
/// off.
Value *transposed_2d(Emit &e, Value *x, Value *w, Value *bias, const Conv &c) {
  if (!x->type().has_static_shape())
    return e.unsupported("transposed, over a shape known only at run time",
                         "export with static shapes");
  if (c.groups > 1) {
    std::vector<Value *> parts = split(e, x, 3, c.groups);
    Conv one = c;
    one.groups = 1;
    for (i64 g = 0; g < c.groups; ++g) {
      auto &p = parts[static_cast<size_t>(g)];
      p = transposed_2d(e, p, part_of(e, w, 0, g, c.groups),
                        bias ? part_of(e, bias, 0, g, c.groups) : nullptr, one);
      if (!p)
        return nullptr;
    }
    return e.concat(parts, 3);
  }
  w = spread(e, w, c.dilation);
  if (!w)
    return nullptr;
  const Dims in = static_dims(x), kernel = static_dims(w);
  const auto full = [&](size_t i) {
    return (in[i + 1] - 1) * c.stride[i] + kernel[i + 2] + c.output_pad[i];
  };
  const Dims whole{in[0], full(0), full(1), kernel[1]};
  const SymDims shape(whole.begin(), whole.end());
  bias = bias_or_zeros(e, bias, kernel[1], e.element());
  Value *y = e.typed(
      op::TRANSPOSE_CONV, {e.i32s(whole), e.transpose(w, {1, 2, 3, 0}), x, bias},
      {{"padding", e.str("VALID")}, {"stride_w", of(c.stride[1])}, {"stride_h", of(c.stride[0])}},
      e.context().tensor_type(e.element(), shape));
  if (c.pad[0] == 0 && c.pad[1] == 0)
    return y;
  return e.slices(y, {0, c.pad[0], c.pad[1], 0},
                  {whole[0], whole[1] - c.pad[0], whole[2] - c.pad[1], whole[3]}, {1, 1, 1, 1});
}

Dims tail(const Dims &d) { return {d.begin() + 1, d.end()}; }

/// x: NCDHW, w: [O, I, D, H, W].
Value *conv_3d(Emit &e, Value *x, Value *w, Value *bias, const Conv &c) {
  if (!x->type().has_static_shape())
    return e.unsupported("3-D, over a shape known only at run time", "export with static shapes");
  if (c.groups > 1) {
    std::vector<Value *> parts;
    Conv one = c;
    one.groups = 1;
    for (i64 g = 0; g < c.groups; ++g)
      parts.push_back(conv_3d(e, part_of(e, x, 1, g, c.groups), part_of(e, w, 0, g, c.groups),
                              bias ? part_of(e, bias, 0, g, c.groups) : nullptr, one));
    return e.concat(parts, 1);
  }
  const Dims in = static_dims(x), kernel = static_dims(w);
  const i64 depth = kernel[2];
  const i64 frames = (in[2] + 2 * c.pad[0] - c.dilation[0] * (depth - 1) - 1) / c.stride[0] + 1;
  Value *y = e.transpose(x, {0, 2, 3, 4, 1});
  // Rank 4 from here on: runtimes pad and slice no more than that.
  y = e.reshape(y, Dims{in[0], in[2], in[3] * in[4], in[1]});
  y = e.pad(y, {0, 0, c.pad[0], c.pad[0], 0, 0, 0, 0});
  std::vector<Value *> taps;
  for (i64 k = 0; k < depth; ++k) {
    const i64 begin = k * c.dilation[0];
    taps.push_back(e.slice(y, 1, begin, begin + (frames - 1) * c.stride[0] + 1, c.stride[0]));
  }
  y = e.concat(taps, 3);
  y = e.reshape(y, Dims{in[0] * frames, in[3], in[4], depth * in[1]});
  w = e.transpose(w, {0, 2, 1, 3, 4});
  w = e.reshape(w, Dims{kernel[0], depth * kernel[1], kernel[3], kernel[4]});
  y = conv_2d(e, y, w, bias, {tail(c.stride), tail(c.pad), tail(c.dilation), {}, 1});
  const Dims plane = static_dims(y);
  y = e.reshape(y, Dims{in[0], frames, plane[1], plane[2], plane[3]});
  return e.transpose(y, {0, 4, 1, 2, 3});
}

Dims with_unit_height(const Dims &d, i64 unit) {
  Dims out{unit};
  out.insert(out.end(), d.begin(), d.end());
  return out;
}

Value *convolution(Emit &e) {
  Value *x = e.arg(0), *w = e.arg(1), *bias = e.arg(2);
  const auto spatial = static_cast<size_t>(w->type().rank() - 2);
  const bool transposed = e.flag("transposed");
  if (!w->type().has_static_shape() || !ir::is_float(e.element()))
    return e.unsupported("of integers, or with a weight whose shape is known only at run time");
  if (spatial < 1 || spatial > 3 || (transposed && spatial == 3))
    return e.unsupported(transposed ? "transposed over three spatial dimensions"
                                    : "over other than one to three spatial dimensions");
  Conv c{e.ints("stride", spatial), e.ints("padding", spatial), e.ints("dilation", spatial),
         e.ints("output_padding", spatial), e.integer("groups")};
  SymDims in = dims_of(x);
  if (in.size() == spatial + 1) { // one example without a batch
    in.insert(in.begin(), 1);
    x = e.reshape(x, in);
  }
  Value *y = nullptr;
  if (spatial == 3) {
    y = conv_3d(e, x, w, bias, c);
  } else {
    if (spatial == 1) {
      c = {with_unit_height(c.stride, 1), with_unit_height(c.pad, 0),
           with_unit_height(c.dilation, 1), with_unit_height(c.output_pad, 0), c.groups};
      w = e.reshape(w, SymDims{w->type().dim(0), w->type().dim(1), 1, w->type().dim(2)});
      x = e.reshape(e.transpose(x, {0, 2, 1}), SymDims{in[0], 1, in[2], in[1]});
    } else {
      x = e.transpose(x, kToNhwc);
    }
    if (!x)
      return nullptr;
    y = transposed ? transposed_2d(e, x, w, bias, c) : conv_2d(e, x, w, bias, c);
    if (!y)
      return nullptr;
    if (spatial == 1)
      y = e.transpose(e.reshape(y, SymDims{y->type().dim(0), y->type().dim(2), y->type().dim(3)}),
                      {0, 2, 1});
    else
      y = e.transpose(y, kToNchw);
  }
  return y ? e.reshape(y, e.type().shape()) : nullptr;
}

} // namespace

void add_conv_rules(pass::PatternSet &set) {
  set.add("convolution", {a::convolution}, lower<convolution>);
}

} // namespace chute::circle

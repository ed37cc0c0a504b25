// convolution (1, 2 and 3 spatial dimensions, grouped, depthwise, dilated, transposed) on
// channels-last data.
//
// 1-D runs as 2-D with height 1. Groups other than depthwise are separate convolutions over slices
// of the channels. TOSA wants windows that divide the input: what no window reaches is cut off.
#include "tosa/legalize/conv.h"

#include <algorithm>
#include <cstring>

namespace chute::tosa {

namespace a = aten::op;

Window window_of(i64 in, i64 out, i64 extent, i64 stride, i64 before) {
  const i64 rest = (out - 1) * stride + extent - in - before;
  return {before, std::max<i64>(0, rest), std::max<i64>(0, -rest)};
}

ElementType accumulator_of(ElementType e) {
  switch (e) {
  case ElementType::I8: return ElementType::I32;
  case ElementType::I16: return ElementType::I48;
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2: return ElementType::F16;
  default: return ElementType::F32;
  }
}

namespace {

Value *bias_or_zero(Emit &e, Value *bias, ElementType element) {
  return bias ? bias : e.single(element, 0);
}

/// The `part`-th of `parts` equal slices along `axis`.
Value *part_of(Emit &e, Value *v, i64 axis, i64 part, i64 parts) {
  const i64 size = v->type().dim(static_cast<int>(axis)).value() / parts;
  return e.slice(v, axis, part * size, (part + 1) * size);
}

/// A convolution over one or all channels: x channels-last, kernel sizes `kernel`.
Value *plain(Emit &e, OpCode code, Value *x, Value *w, const Dims &kernel, Value *bias,
             const Conv &c) {
  SymDims pad;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const i64 in = x->type().dim(static_cast<int>(i) + 1).value();
    const i64 extent = c.dilation[i] * (kernel[i] - 1) + 1;
    const i64 out = (in + 2 * c.pad[i] - extent) / c.stride[i] + 1;
    const Window window = window_of(in, out, extent, c.stride[i], c.pad[i]);
    x = e.slice(x, static_cast<i64>(i) + 1, 0, in - window.cut);
    pad.emplace_back(window.before);
    pad.emplace_back(window.after);
  }
  const ElementType element = x->type().element();
  const SymDims stride(c.stride.begin(), c.stride.end());
  const SymDims dilation(c.dilation.begin(), c.dilation.end());
  return e(code,
           {x, w, bias_or_zero(e, bias, element), e.single(element, 0),
            e.single(w->type().element(), 0)},
           {{"pad", e.context().ints_attr(pad)},
            {"stride", e.context().ints_attr(stride)},
            {"dilation", e.context().ints_attr(dilation)},
            {"acc_type", of(accumulator_of(element))}});
}

/// x: channels-last; w: [O, I, kernel...] as torch has it.
Value *forward(Emit &e, Value *x, Value *w, Value *bias, const Conv &c) {
  const size_t spatial = c.stride.size();
  const Dims from = static_dims(w);
  const Dims kernel(from.begin() + 2, from.end());
  const i64 channels = x->type().dim(static_cast<int>(spatial) + 1).value();
  if (c.groups > 1 && spatial == 2 && channels == c.groups && from[1] == 1) {
    const i64 multiplier = from[0] / channels;
    Value *hwcm =
        e.reshape(e.transpose(w, {2, 3, 0, 1}), {kernel[0], kernel[1], channels, multiplier});
    return plain(e, op::DEPTHWISE_CONV2D, x, hwcm, kernel, bias, c);
  }
  if (c.groups > 1) {
    std::vector<Value *> parts;
    Conv one = c;
    one.groups = 1;
    for (i64 g = 0; g < c.groups; ++g)
      parts.push_back(forward(e, part_of(e, x, static_cast<i64>(spatial) + 1, g, c.groups),
                              part_of(e, w, 0, g, c.groups),
                              bias ? part_of(e, bias, 0, g, c.groups) : nullptr, one));
    return e.concat(parts, static_cast<i64>(spatial) + 1);
  }
  if (spatial == 3)
    return plain(e, op::CONV3D, x, e.transpose(w, {0, 2, 3, 4, 1}), kernel, bias, c);
  return plain(e, op::CONV2D, x, e.transpose(w, {0, 2, 3, 1}), kernel, bias, c);
}

/// Zeros between the taps of a constant kernel [I, O, H, W], for dilated transposed convolutions.
Value *spread(Emit &e, Value *w, const Dims &dilation) {
  if (dilation[0] == 1 && dilation[1] == 1)
    return w;
  const ir::Constant *c = constant_of(w);
  if (!c || !c->has_data)
    return e.unsupported("transposed, dilated and with a weight computed at run time");
  return e.constant(pass::spread(e.graph(), *c, dilation));
}

/// x: NHWC; w: [I, O, H, W].
Value *transposed(Emit &e, Value *x, Value *w, Value *bias, const Conv &c) {
  if (c.groups > 1) {
    std::vector<Value *> parts;
    Conv one = c;
    one.groups = 1;
    for (i64 g = 0; g < c.groups; ++g) {
      Value *p = transposed(e, part_of(e, x, 3, g, c.groups), part_of(e, w, 0, g, c.groups),
                            bias ? part_of(e, bias, 0, g, c.groups) : nullptr, one);
      if (!p)
        return nullptr;
      parts.push_back(p);
    }
    return e.concat(parts, 3);
  }
  w = spread(e, w, c.dilation);
  if (!w)
    return nullptr;
  const Dims kernel = static_dims(w);
  // out_pad has to stay above minus the kernel's size; what is beyond is cut off afterwards.
  SymDims pad;
  Dims cut;
  for (size_t i = 0; i < 2; ++i)
    for (const i64 want : {-c.pad[i], c.output_pad[i] - c.pad[i]}) {
      const i64 given = std::max(want, 1 - kernel[i + 2]);
      pad.emplace_back(given);
      cut.push_back(given - want);
    }
  const ElementType element = x->type().element();
  const SymDims stride(c.stride.begin(), c.stride.end());
  Value *y = e(op::TRANSPOSE_CONV2D,
               {x, e.transpose(w, {1, 2, 3, 0}), bias_or_zero(e, bias, element),
                e.single(element, 0), e.single(element, 0)},
               {{"out_pad", e.context().ints_attr(pad)},
                {"stride", e.context().ints_attr(stride)},
                {"acc_type", of(accumulator_of(element))}});
  for (size_t i = 0; i < 2; ++i)
    y = e.slice(y, static_cast<i64>(i) + 1, cut[2 * i],
                y->type().dim(static_cast<int>(i) + 1).value() - cut[2 * i + 1]);
  return y;
}

Dims with_unit_height(const Dims &d, i64 unit) {
  Dims out{unit};
  out.insert(out.end(), d.begin(), d.end());
  return out;
}

Value *convolution(Emit &e) {
  Value *x = e.arg(0), *w = e.arg(1), *bias = e.arg(2);
  const auto spatial = static_cast<size_t>(w->type().rank() - 2);
  const bool is_transposed = e.flag("transposed");
  if (!is_float(x))
    return e.unsupported("of integers", "quantize the model, or cast to float32");
  if (spatial < 1 || spatial > 3 || (is_transposed && spatial == 3))
    return e.unsupported(is_transposed ? "transposed over three spatial dimensions"
                                       : "over other than one to three spatial dimensions");
  Conv c{e.ints("stride", spatial), e.ints("padding", spatial), e.ints("dilation", spatial),
         e.ints("output_padding", spatial), e.integer("groups")};
  Dims in = static_dims(x);
  if (in.size() == spatial + 1) { // one example without a batch
    in.insert(in.begin(), 1);
    x = e.reshape(x, in);
  }
  if (spatial == 3) {
    Value *y = forward(e, e.transpose(x, {0, 2, 3, 4, 1}), w, bias, c);
    return e.reshape(e.transpose(y, {0, 4, 1, 2, 3}), static_dims(e.type()));
  }
  if (spatial == 1) {
    c = {with_unit_height(c.stride, 1), with_unit_height(c.pad, 0), with_unit_height(c.dilation, 1),
         with_unit_height(c.output_pad, 0), c.groups};
    const Dims kernel = static_dims(w);
    w = e.reshape(w, {kernel[0], kernel[1], 1, kernel[2]});
    x = e.reshape(e.transpose(x, {0, 2, 1}), {in[0], 1, in[2], in[1]});
  } else {
    x = e.transpose(x, kToNhwc);
  }
  Value *y = is_transposed ? transposed(e, x, w, bias, c) : forward(e, x, w, bias, c);
  if (!y)
    return nullptr;
  if (spatial == 2)
    return e.reshape(e.transpose(y, kToNchw), static_dims(e.type()));
  const Dims out = static_dims(y);
  return e.reshape(e.transpose(e.reshape(y, {out[0], out[2], out[3]}), {0, 2, 1}),
                   static_dims(e.type()));
}

} // namespace

Value *conv2d(Emit &e, Value *x, Value *w, Value *bias, const Conv &c) {
  return plain(e, op::CONV2D, x, w, {w->type().dim(1).value(), w->type().dim(2).value()}, bias, c);
}

void add_conv_rules(pass::PatternSet &set) {
  set.add("convolution", {a::convolution}, lower<convolution>);
}

} // namespace chute::tosa

#include "aten/infer/args.h"

#include <array>

/// Convolutions, pooling and patch extraction. Layouts are [batch, channels, spatial…]; most
/// operators also take a tensor without the batch dimension.
namespace chute::aten::rule {

using ir::SymInt;
using ir::Type;

namespace {

struct ConvSettings {
  Dims stride, padding, dilation, output_padding;
  SymInt groups = 1;
  bool transposed = false;
  bool same = false; ///< padding='same': sizes stay
};

bool positive(InferArgs &a, const Dims &values, std::string_view what) {
  for (SymInt v : values)
    if (!a.check(v.is_symbolic() || v.value() > 0, kAttrError,
                 [&] { return std::string(what) + " must be positive"; }))
      return false;
  return true;
}

void same_size(InferArgs &a, SymInt x, SymInt y, std::string_view what) {
  a.check(x == y, kShapeError, [&] {
    return std::string(what) + ": " + a.sym().print(x) + " and " + a.sym().print(y) +
           " must be equal";
  });
}

Status convolve(InferArgs &a, const ConvSettings &c) {
  const Type x = a.tensor(0), w = a.tensor(1);
  const size_t spatial = static_cast<size_t>(w.rank()) - 2;
  const bool batched = x.rank() == w.rank();
  if (!a.check(batched || x.rank() + 1 == w.rank(), kShapeError,
               [&] {
                 return "input " + a.print(x.shape()) + " does not fit weight " +
                        a.print(w.shape());
               }) ||
      !positive(a, c.stride, "stride") || !positive(a, c.dilation, "dilation"))
    return a.failed();
  a.check(x.element() == w.element(), kDtypeError, "input and weight differ in element type");
  const int channel = batched ? 1 : 0;
  ir::SymTable &sym = a.sym();
  Dims shape = dims_of(x);
  if (c.transposed) {
    same_size(a, x.dim(channel), w.dim(0), "input channels");
    shape[static_cast<size_t>(channel)] = sym.mul(w.dim(1), c.groups);
  } else {
    same_size(a, x.dim(channel), sym.mul(w.dim(1), c.groups), "input channels");
    shape[static_cast<size_t>(channel)] = w.dim(0);
  }
  for (size_t i = 0; i < spatial && !c.same; ++i) {
    SymInt &d = shape[static_cast<size_t>(channel) + 1 + i];
    const SymInt kernel = w.dim(static_cast<int>(2 + i)), p = c.padding[i];
    if (c.transposed) {
      // (in - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
      const SymInt reach = sym.mul(c.dilation[i], sym.sub(kernel, 1));
      d = sym.sub(sym.mul(sym.sub(d, 1), c.stride[i]), sym.mul(p, 2));
      d = sym.add(sym.add(sym.add(d, reach), c.output_padding[i]), 1);
    } else {
      d = window_output(sym, d, p, p, c.dilation[i], kernel, c.stride[i]);
    }
    a.check(d.is_symbolic() || d.value() >= 0, kShapeError, "the kernel is larger than the input");
  }
  return a.done(x.element(), shape);
}

bool read_conv(InferArgs &a, ConvSettings &c) {
  if (!a.check(a.tensor(1).rank() >= 3, kShapeError, "the weight needs spatial dimensions"))
    return false;
  const size_t n = static_cast<size_t>(a.tensor(1).rank()) - 2;
  c.stride = a.ints_n("stride", n, 1);
  c.padding = a.ints_n("padding", n, 0);
  c.dilation = a.ints_n("dilation", n, 1);
  c.output_padding = a.ints_n("output_padding", n, 0);
  c.groups = a.integer("groups", 1);
  return a.check(c.groups.is_symbolic() || c.groups.value() > 0, kAttrError,
                 "groups must be positive") &&
         !a.bad();
}

} // namespace

Status convolution(InferArgs &a) {
  ConvSettings c;
  if (!read_conv(a, c))
    return a.failed();
  c.transposed = a.flag("transposed");
  return convolve(a, c);
}

Status conv_transpose(InferArgs &a) {
  ConvSettings c;
  if (!read_conv(a, c))
    return a.failed();
  c.transposed = true;
  return convolve(a, c);
}

Status conv_padding(InferArgs &a) {
  ConvSettings c;
  if (!read_conv(a, c))
    return a.failed();
  c.same = a.text("padding") == "same";
  a.check(c.same || a.text("padding") == "valid", kAttrError, "padding must be same or valid");
  return convolve(a, c);
}

Status conv_tbc(InferArgs &a) {
  const Type x = a.tensor(0), w = a.tensor(1);
  if (!a.check(x.rank() == 3 && w.rank() == 3, kShapeError,
               "input must be [time, batch, in], weight [kernel, in, out]"))
    return a.failed();
  same_size(a, x.dim(2), w.dim(1), "input channels");
  const SymInt pad = a.integer("pad");
  const SymInt time = window_output(a.sym(), x.dim(0), pad, pad, 1, w.dim(0), 1);
  return a.done(x.element(), std::array{time, x.dim(1), w.dim(2)});
}

// --- pooling -------------------------------------------------------------------------------------

namespace {

/// Number of pooled dimensions from the digit in the operator's name (max_pool2d, avg_pool1d).
size_t pooled_dims(InferArgs &a) {
  const std::string_view name = a.op().name();
  const size_t at = name.find("pool");
  return static_cast<size_t>(name[at + 4] - '0');
}

bool pool_rank(InferArgs &a, size_t n) {
  const auto rank = static_cast<size_t>(a.tensor(0).rank());
  return a.check(rank == n + 1 || rank == n + 2, kShapeError, [&] {
    return "input must have " + std::to_string(n + 1) + " or " + std::to_string(n + 2) +
           " dimensions";
  });
}

bool pooled_shape(InferArgs &a, Dims &shape) {
  const size_t n = pooled_dims(a);
  const Dims kernel = a.ints_n("kernel_size", n, 1);
  Dims stride = a.ints("stride").empty() ? kernel : a.ints_n("stride", n, 1);
  const Dims padding = a.ints_n("padding", n, 0), dilation = a.ints_n("dilation", n, 1);
  if (!pool_rank(a, n) || a.bad() || !positive(a, kernel, "kernel_size") ||
      !positive(a, stride, "stride") || !positive(a, dilation, "dilation"))
    return false;
  shape = dims_of(a.tensor(0));
  const auto window = a.flag("ceil_mode") ? window_output_ceil : window_output;
  for (size_t i = 0; i < n; ++i) {
    SymInt &d = shape[shape.size() - n + i];
    d = window(a.sym(), d, padding[i], padding[i], dilation[i], kernel[i], stride[i]);
    if (!a.check(d.is_symbolic() || d.value() >= 1, kShapeError,
                 "the window is larger than the input"))
      return false;
  }
  return true;
}

bool adaptive_shape(InferArgs &a, Dims &shape) {
  const size_t n = pooled_dims(a);
  const Dims size = a.ints_n("output_size", n, 1);
  if (!pool_rank(a, n) || a.bad())
    return false;
  shape = dims_of(a.tensor(0));
  for (size_t i = 0; i < n; ++i)
    shape[shape.size() - n + i] = size[i];
  return true;
}

Status with_indices(InferArgs &a, const Dims &shape) {
  a.add(a.tensor(0).element(), shape);
  return a.done(ir::ElementType::I64, shape);
}

} // namespace

Status pool(InferArgs &a) {
  Dims shape;
  return pooled_shape(a, shape) ? a.done(a.tensor(0).element(), shape) : a.failed();
}

Status pool_indices(InferArgs &a) {
  Dims shape;
  return pooled_shape(a, shape) ? with_indices(a, shape) : a.failed();
}

Status adaptive_pool(InferArgs &a) {
  Dims shape;
  return adaptive_shape(a, shape) ? a.done(a.tensor(0).element(), shape) : a.failed();
}

Status adaptive_pool_indices(InferArgs &a) {
  Dims shape;
  return adaptive_shape(a, shape) ? with_indices(a, shape) : a.failed();
}

Status unpool(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!pool_rank(a, 2))
    return a.failed();
  const Dims size = a.ints_n("output_size", 2, 1);
  Dims shape = dims_of(x);
  shape[shape.size() - 2] = size[0];
  shape[shape.size() - 1] = size[1];
  return a.done(x.element(), shape);
}

// --- patches -------------------------------------------------------------------------------------

namespace {

/// Number of positions of the sliding block over (height, width).
SymInt block_count(InferArgs &a, SymInt height, SymInt width) {
  const Dims kernel = a.ints_n("kernel_size", 2, 1), dilation = a.ints_n("dilation", 2, 1);
  const Dims padding = a.ints_n("padding", 2, 0), stride = a.ints_n("stride", 2, 1);
  if (a.bad() || !positive(a, stride, "stride"))
    return 0;
  const std::array<SymInt, 2> in{height, width};
  SymInt count = 1;
  for (size_t i = 0; i < 2; ++i)
    count = a.sym().mul(count, window_output(a.sym(), in[i], padding[i], padding[i], dilation[i],
                                             kernel[i], stride[i]));
  return count;
}

} // namespace

Status im2col(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() == 3 || x.rank() == 4, kShapeError, "input must be an image"))
    return a.failed();
  const Dims kernel = a.ints_n("kernel_size", 2, 1);
  const size_t c = static_cast<size_t>(x.rank()) - 3;
  const DimSpan s = x.shape();
  Dims shape(s.begin(), s.begin() + static_cast<i64>(c));
  shape.push_back(a.sym().mul(s[c], a.sym().mul(kernel[0], kernel[1])));
  shape.push_back(block_count(a, s[c + 1], s[c + 2]));
  return a.done(x.element(), shape);
}

Status col2im(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() == 2 || x.rank() == 3, kShapeError, "input must be columns"))
    return a.failed();
  const Dims kernel = a.ints_n("kernel_size", 2, 1), size = a.ints_n("output_size", 2, 1);
  const size_t c = static_cast<size_t>(x.rank()) - 2;
  const auto channels = a.sym().exact_div(x.shape()[c], a.sym().mul(kernel[0], kernel[1]));
  if (!a.check(channels.has_value(), kShapeError, "columns do not divide by the kernel"))
    return a.failed();
  const SymInt blocks = block_count(a, size[0], size[1]);
  a.check(blocks.is_symbolic() || blocks == x.shape()[c + 1], kShapeError,
          "the number of columns does not fit output_size");
  Dims shape(x.shape().begin(), x.shape().begin() + static_cast<i64>(c));
  for (SymInt d : {*channels, size[0], size[1]})
    shape.push_back(d);
  return a.done(x.element(), shape);
}

} // namespace chute::aten::rule

#include "aten/infer/args.h"

#include <algorithm>
#include <array>

/// quantized_decomposed.*, circle_custom.*, torchao.*: operators from outside PyTorch's own set
/// that exported programs hold. The circle_custom ones compute on channels-last tensors.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

Status quantize(InferArgs &a) {
  const std::string_view name = a.op().def().attr_index("dtype") >= 0 ? "dtype" : "output_dtype";
  return a.done(a.dtype(a.tensor(0).element(), name), a.tensor(0).shape());
}

Status dequantize(InferArgs &a) {
  const std::string_view name =
      a.op().def().attr_index("out_dtype") >= 0 ? "out_dtype" : "output_dtype";
  return a.done(a.dtype(kDefaultFloat, name), a.tensor(0).shape());
}

Status choose_qparams(InferArgs &a) {
  const std::array one{SymInt(1)};
  a.add(ElementType::F64, one);
  return a.done(ElementType::I64, one);
}

Status choose_qparams_per_token(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() >= 1, kShapeError, "needs a dimension"))
    return a.failed();
  Dims shape = dims_of(x);
  shape.back() = 1;
  a.add(ElementType::F64, shape);
  return a.done(ElementType::I64, shape);
}

Status affine_qparams(InferArgs &a) {
  const Type x = a.tensor(0);
  const DimSpan block = a.ints("block_size");
  if (!a.check(block.size() == x.shape().size(), kAttrError, "block_size needs every dimension"))
    return a.failed();
  // One scale per block; a dimension that one block covers stays as 1 only with keepdim.
  Dims shape;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool whole = block[i] == x.shape()[i] || block[i] == SymInt(-1);
    if (!whole && !a.check(block[i].is_symbolic() || block[i].value() > 0, kAttrError,
                           "block_size must be positive"))
      return a.failed();
    if (!whole)
      shape.push_back(a.sym().floordiv(x.shape()[i], block[i]));
    else if (a.flag("keepdim"))
      shape.push_back(1);
  }
  a.add(a.dtype(x.element(), "scale_dtype"), shape);
  return a.done(a.dtype(ElementType::I32, "zero_point_dtype"), shape);
}

namespace {

/// stride, padding and dilation of a channels-last operator, whose lists may all be absent.
struct Window {
  Dims stride, padding, dilation;
};

bool read_window(InferArgs &a, Window &w, const Dims &absent_stride) {
  w.stride = a.ints("stride").empty() ? absent_stride : a.ints_n("stride", 2, 1);
  w.padding = a.ints_n("padding", 2, 0);
  w.dilation = a.ints_n("dilation", 2, 1);
  for (size_t i = 0; i < 2; ++i)
    a.check((w.stride[i].is_symbolic() || w.stride[i].value() > 0) &&
                (w.dilation[i].is_symbolic() || w.dilation[i].value() > 0),
            kAttrError, "stride and dilation must be positive");
  return a.check(a.tensor(0).rank() == 4, kShapeError,
                 "input must be [batch, height, width, channels]") &&
         !a.bad();
}

Status nhwc_conv(InferArgs &a, SymInt channels) {
  const Type x = a.tensor(0), k = a.tensor(1);
  Window w;
  if (!a.check(k.rank() == 4, kShapeError, "the kernel must have 4 dimensions") ||
      !read_window(a, w, Dims(2, SymInt(1))))
    return a.failed();
  const bool same = a.text("padding") == "same";
  Dims shape = dims_of(x);
  for (size_t i = 0; i < 2; ++i)
    shape[1 + i] = same ? a.sym().ceildiv(shape[1 + i], w.stride[i])
                        : window_output(a.sym(), shape[1 + i], w.padding[i], w.padding[i],
                                        w.dilation[i], k.dim(static_cast<int>(1 + i)), w.stride[i]);
  shape[3] = channels;
  return a.done(x.element(), shape);
}

} // namespace

Status nhwc_conv2d(InferArgs &a) {
  const Type k = a.tensor(1);
  return nhwc_conv(a, k.rank() ? k.dim(0) : SymInt(0));
}

Status nhwc_depthwise_conv2d(InferArgs &a) {
  const Type k = a.tensor(1);
  return nhwc_conv(a, k.rank() ? k.shape().back() : SymInt(0));
}

Status nhwc_transpose_conv(InferArgs &a) {
  const Type x = a.tensor(0), k = a.tensor(1);
  Window w;
  if (!a.check(k.rank() == 4, kShapeError, "the kernel must have 4 dimensions") ||
      !read_window(a, w, Dims(2, SymInt(1))))
    return a.failed();
  const Dims extra = a.ints_n("output_padding", 2, 0);
  ir::SymTable &sym = a.sym();
  Dims shape = dims_of(x);
  for (size_t i = 0; i < 2; ++i) {
    const SymInt reach = sym.mul(w.dilation[i], sym.sub(k.dim(static_cast<int>(1 + i)), 1));
    SymInt &d = shape[1 + i];
    d = sym.sub(sym.mul(sym.sub(d, 1), w.stride[i]), sym.mul(w.padding[i], 2));
    d = sym.add(sym.add(sym.add(d, reach), extra[i]), 1);
  }
  shape[3] = sym.mul(k.dim(0), a.integer("groups", 1));
  return a.done(x.element(), shape);
}

Status nhwc_pool(InferArgs &a) {
  const Type x = a.tensor(0);
  const Dims kernel = a.ints_n("kernel_size", 2, 1);
  Window w;
  if (a.bad() || !read_window(a, w, kernel))
    return a.failed();
  const auto window = a.flag("ceil_mode") ? window_output_ceil : window_output;
  Dims shape = dims_of(x);
  for (size_t i = 0; i < 2; ++i)
    shape[1 + i] = window(a.sym(), shape[1 + i], w.padding[i], w.padding[i], w.dilation[i],
                          kernel[i], w.stride[i]);
  return a.done(x.element(), shape);
}

Status mxfp_conv2d(InferArgs &a) {
  // [batch, channels, height, width] with a weight packed as [out, height, width, in].
  const Type x = a.tensor(0), k = a.tensor(1);
  Window w;
  if (!a.check(k.rank() == 4, kShapeError, "the weight must have 4 dimensions") ||
      !read_window(a, w, Dims(2, SymInt(1))))
    return a.failed();
  Dims shape = dims_of(x);
  shape[1] = k.dim(0);
  for (size_t i = 0; i < 2; ++i)
    shape[2 + i] = window_output(a.sym(), shape[2 + i], w.padding[i], w.padding[i], w.dilation[i],
                                 k.dim(static_cast<int>(1 + i)), w.stride[i]);
  return a.done(x.element(), shape);
}

Status mxfp_linear(InferArgs &a) {
  const Type x = a.tensor(0), w = a.tensor(1);
  if (!a.check(x.rank() >= 1 && w.rank() >= 2, kShapeError, "the weight must be [1, out, in]"))
    return a.failed();
  Dims shape = dims_of(x);
  shape.back() = w.dim(w.rank() - 2);
  return a.done(x.element(), shape);
}

Status nhwc_resize(InferArgs &a) {
  const Type x = a.tensor(0);
  const Dims size = a.ints_n("size", 2, 1);
  if (!a.check(x.rank() == 4, kShapeError, "input must be [batch, height, width, channels]"))
    return a.failed();
  return a.done(x.element(), std::array{x.dim(0), size[0], size[1], x.dim(3)});
}

Status shape_vector(InferArgs &a) {
  return a.done(ElementType::I32, std::array{SymInt(a.tensor(0).rank())});
}

Status gather_nd(InferArgs &a) {
  const Type params = a.tensor(0), indices = a.tensor(1);
  const SymInt depth = indices.rank() ? indices.shape().back() : SymInt(-1);
  if (!a.check(depth.is_static() && depth.value() >= 0 && depth.value() <= params.rank(),
               kShapeError, "the last dimension of indices must be a known number of dimensions"))
    return a.failed();
  Dims shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), params.shape().begin() + depth.value(), params.shape().end());
  return a.done(params.element(), shape);
}

} // namespace chute::aten::rule

// Convolutions, pooling, products, resizing, transforms: images are NHWC.
#include "tosa/infer_support.h"
#include "tosa/ops.h"

namespace chute::tosa {

using ir::ElementType;
using ir::SymInt;
using Dims = Inference::Dims;

namespace {

/// What products of that type accumulate to.
ElementType product_of(ElementType e) {
  switch (e) {
  case ElementType::I8: return ElementType::I32;
  case ElementType::I16: return ElementType::I48;
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2: return ElementType::F16;
  default: return e;
  }
}

/// Windows along one dimension; the size must come out even.
Result<SymInt> windows(const Inference &in, SymInt size, i64 kernel, i64 stride, i64 before,
                       i64 after, i64 dilation) {
  ir::SymTable &sym = in.sym();
  const SymInt span = sym.sub(sym.add(size, before + after), dilation * (kernel - 1) + 1);
  if (span.is_static() && (span.value() < 0 || span.value() % stride != 0))
    return in.bad("the windows do not divide the input: " + std::to_string(span.value()) +
                  " by a stride of " + std::to_string(stride));
  return sym.add(sym.floordiv(span, stride), 1);
}

Status convolution(const Inference &in, size_t spatial, bool depthwise) {
  TOSA_TRY(in.tensors(3, static_cast<int>(spatial) + 2));
  if (in.rank(1) != static_cast<int>(spatial) + 2 || in.rank(2) != 1)
    return in.bad("the weight or the bias has a wrong rank");
  TOSA_TRY_TO(pad, in.list("pad", 2 * spatial, 0));
  TOSA_TRY_TO(stride, in.list("stride", spatial, 1));
  TOSA_TRY_TO(dilation, in.list("dilation", spatial, 1));
  const Dims x = in.dims(), w = in.dims(1);
  Dims shape{x[0]};
  for (size_t i = 0; i < spatial; ++i) {
    const SymInt kernel = w[depthwise ? i : i + 1];
    if (kernel.is_symbolic())
      return in.bad("the kernel's size is known only at run time");
    TOSA_TRY_TO(n, windows(in, x[i + 1], kernel.value(), stride[i], pad[2 * i], pad[2 * i + 1],
                           dilation[i]));
    shape.push_back(n);
  }
  shape.push_back(depthwise ? in.sym().mul(w[2], w[3]) : w[0]);
  return in.give(product_of(in.element()), shape);
}

} // namespace

Status infer_conv2d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return convolution({op, graph, out}, 2, false);
}
Status infer_conv3d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return convolution({op, graph, out}, 3, false);
}
Status infer_depthwise(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return convolution({op, graph, out}, 2, true);
}

Status infer_transpose_conv(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(3, 4));
  if (in.rank(1) != 4)
    return in.bad("the weight has rank 4");
  TOSA_TRY_TO(pad, in.list("out_pad", 4, -(i64{1} << 31)));
  TOSA_TRY_TO(stride, in.list("stride", 2, 1));
  const Dims x = in.dims(), w = in.dims(1);
  ir::SymTable &sym = in.sym();
  Dims shape{x[0]};
  for (size_t i = 0; i < 2; ++i)
    shape.push_back(sym.add(sym.mul(sym.sub(x[i + 1], 1), stride[i]),
                            sym.add(w[i + 1], pad[2 * i] + pad[2 * i + 1])));
  shape.push_back(w[0]);
  return in.give(product_of(in.element()), shape);
}

Status infer_pool(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1, 4));
  TOSA_TRY_TO(kernel, in.list("kernel", 2, 1));
  TOSA_TRY_TO(stride, in.list("stride", 2, 1));
  TOSA_TRY_TO(pad, in.list("pad", 4, 0));
  Dims shape = in.dims();
  for (size_t i = 0; i < 2; ++i) {
    TOSA_TRY_TO(n, windows(in, shape[i + 1], kernel[i], stride[i], pad[2 * i], pad[2 * i + 1], 1));
    shape[i + 1] = n;
  }
  return in.moved(shape);
}

/// Half-precision products accumulate to f32 unless whoever makes the operator says f16.
Status infer_matmul(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(2, 3));
  if (in.rank(1) != 3)
    return in.bad("operand 1 has rank " + std::to_string(in.rank(1)) + ", not 3");
  const Dims a = in.dims(0), b = in.dims(1);
  const auto differ = [](SymInt x, SymInt y) { return x.is_static() && y.is_static() && x != y; };
  if (differ(a[0], b[0]) || differ(a[2], b[1]))
    return in.bad("the operands' batches or depths differ");
  const ElementType e = in.element();
  const bool half = e == ElementType::F16 || e == ElementType::BF16;
  return in.give(half ? ElementType::F32 : product_of(e), Dims{a[0], a[1], b[2]});
}

Status infer_matmul_t(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(4, 3));
  if (in.rank(2) != 3)
    return in.bad("operand 2 has rank " + std::to_string(in.rank(2)) + ", not 3");
  return in.give(ElementType::F32, Dims{in.type(0).dim(0), in.type(0).dim(1), in.type(2).dim(1)});
}

Status infer_conv2d_block_scaled(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(8, 4));
  const auto pad = constant_ints(op.operand(5)), stride = constant_ints(op.operand(6)),
             dilation = constant_ints(op.operand(7));
  if (!pad || !stride || !dilation)
    return in.unknown("a shape operand is known only at run time");
  if (in.rank(2) != 4 || pad->size() != 4 || stride->size() != 2 || dilation->size() != 2)
    return in.bad("the weight's rank or a shape operand's length is wrong");
  const Dims x = in.dims(0), w = in.dims(2);
  Dims shape{x[0]};
  for (size_t i = 0; i < 2; ++i) {
    if (w[i + 1].is_symbolic() || (*stride)[i] < 1 || (*dilation)[i] < 1)
      return in.bad("the kernel's size, a stride or a dilation is out of range");
    TOSA_TRY_TO(n, windows(in, x[i + 1], w[i + 1].value(), (*stride)[i], (*pad)[2 * i],
                           (*pad)[2 * i + 1], (*dilation)[i]));
    shape.push_back(n);
  }
  shape.push_back(w[0]);
  return in.give(ElementType::F32, shape);
}

Status infer_resize(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1, 4));
  const auto scale = constant_ints(op.operand(1)), offset = constant_ints(op.operand(2)),
             border = constant_ints(op.operand(3));
  if (!scale || !offset || !border)
    return in.unknown("a shape operand is known only at run time");
  if (scale->size() != 4 || offset->size() != 2 || border->size() != 2)
    return in.bad("scale, offset or border has a wrong length");
  Dims shape = in.dims();
  ir::SymTable &sym = in.sym();
  for (size_t i = 0; i < 2; ++i) {
    const i64 n = (*scale)[2 * i], d = (*scale)[2 * i + 1];
    if (n < 1 || d < 1)
      return in.bad("scale is not positive");
    const SymInt span = sym.add(sym.mul(sym.sub(shape[i + 1], 1), n), (*border)[i] - (*offset)[i]);
    if (span.is_static() && (span.value() < 0 || span.value() % d != 0))
      return in.bad("scale, offset and border do not give a whole number of rows or columns");
    shape[i + 1] = sym.add(sym.floordiv(span, d), 1);
  }
  const ElementType e = in.element();
  ElementType result = e;
  if (op.attr("mode").as_string() == "BILINEAR" && !ir::is_float(e))
    result = product_of(e);
  return in.give(result, shape);
}

Status infer_fft2d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(2, 3));
  TOSA_TRY(in.give(in.element(), in.dims()));
  return in.give(in.element(), in.dims());
}

Status infer_rfft2d(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1, 3));
  Dims shape = in.dims();
  shape[2] = in.sym().add(in.sym().floordiv(shape[2], 2), 1);
  TOSA_TRY(in.give(in.element(), shape));
  return in.give(in.element(), shape);
}

} // namespace chute::tosa

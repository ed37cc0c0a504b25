// The block-scaled products of the ExecuTorch Arm backend's library (tosa_mxfp.linear and .conv2d):
// weights of 4 or 8 bits with one scale per 32 elements, activations scaled alike at run time.
//
//   tosa_mxfp.linear(x, qdata, scale, bias) → MATMUL_T_BLOCK_SCALED(CAST_TO_BLOCK_SCALED(x), …) +
//   bias tosa_mxfp.conv2d(…)                     → CONV2D_BLOCK_SCALED on NHWC
#include "tosa/legalize/emit.h"

namespace chute::tosa {

namespace {

namespace a = aten::op;

constexpr i64 kBlock = 32;

/// The weight as elements of their own type; null after `unsupported`.
Value *payload(Emit &e) {
  Value *data = e.arg(1);
  if (e.integer("block_size") != kBlock)
    return e.unsupported("with a block size other than 32");
  const ElementType element = data->type().element();
  if (element == ElementType::F8E4M3FN || element == ElementType::F8E5M2)
    return data;
  const ir::Constant *c = constant_of(data);
  const std::string type(e.attr("weight_payload_dtype").as_string());
  if (!c || !c->has_data || type != "f4e2m1" || element != ElementType::U8)
    return e.unsupported("with weights of type " + type, "use weights of f4e2m1, f8e4m3 or f8e5m2");
  // Two elements per byte, the first one low.
  Dims shape = static_dims(data);
  shape.back() *= 2;
  const SymDims dims(shape.begin(), shape.end());
  std::vector<std::byte> packed(c->dense_bytes());
  c->copy_dense(packed.data());
  std::byte *out = nullptr;
  const ir::Constant *made =
      e.graph().add_buffer(e.context().tensor_type(ElementType::MXFP4, dims), &out);
  for (std::byte b : packed) {
    *out++ = b & std::byte{15};
    *out++ = b >> 4;
  }
  return e.constant(made);
}

/// Results: elements of type `element`, and their scales.
std::pair<Value *, Value *> scaled(Emit &e, Value *x, ElementType element) {
  Dims blocks = static_dims(x);
  blocks.back() /= kBlock;
  const SymDims dims(blocks.begin(), blocks.end());
  const Type types[] = {e.context().with_element(x->type(), element),
                        e.context().tensor_type(ElementType::F8E8M0FNU, dims)};
  const NamedAttr size{"block_size", e.str("BLOCK_SIZE_32")};
  ir::Op *made = e.typed(op::CAST_TO_BLOCK_SCALED, std::span(&x, 1), std::span(&size, 1), types);
  return {made->result(0), made->result(1)};
}

Value *linear(Emit &e) {
  Value *x = e.arg(0), *w_scale = e.arg(2), *bias = e.arg(3);
  Value *w = payload(e);
  if (!w)
    return nullptr;
  const Dims in = static_dims(x);
  const i64 depth = in.back(), units = w->type().dim(1).value();
  const auto [data, scale] =
      scaled(e, e.reshape(x, {1, product(in) / depth, depth}), w->type().element());
  Value *y = e(op::MATMUL_T_BLOCK_SCALED, {data, scale, w, w_scale},
               {{"block_size", e.str("BLOCK_SIZE_32")}});
  Dims out = in;
  out.back() = units;
  y = e.reshape(y, out);
  return bias ? e.add(y, bias) : y;
}

Value *conv2d(Emit &e) {
  Value *x = e.arg(0), *w_scale = e.arg(2), *bias = e.arg(3);
  Value *w = payload(e);
  if (!w)
    return nullptr;
  const Dims stride = e.ints("stride", 2), pad = e.ints("padding", 2),
             dilation = e.ints("dilation", 2);
  if (e.integer("groups") != 1)
    return e.unsupported("grouped");
  const auto [data, scale] = scaled(e, e.transpose(x, kToNhwc), w->type().element());
  Value *b = bias ? bias : e.single(ElementType::F32, 0);
  Value *y = e(op::CONV2D_BLOCK_SCALED,
               {data, scale, w, w_scale, b, e.shape({pad[0], pad[0], pad[1], pad[1]}),
                e.shape(stride), e.shape(dilation)},
               {{"block_size", e.str("BLOCK_SIZE_32")}});
  return e.transpose(y, kToNchw);
}

} // namespace

void add_block_scaled_rules(pass::PatternSet &set) {
  set.add("block-scaled-linear", {a::tosa_mxfp_linear}, lower<linear>);
  set.add("block-scaled-conv2d", {a::tosa_mxfp_conv2d}, lower<conv2d>);
}

} // namespace chute::tosa

// linear and matmul. A constant matrix of weights makes a 1x1 convolution, which takes the bias;
// two activations make MATMUL.
#include "aten/quantization.h"
#include "tosa/legalize/conv.h"

#include <algorithm>

namespace chute::tosa {

namespace {

namespace a = aten::op;

/// x [..., K] by weights [N, K].
Value *by_weights(Emit &e, Value *x, Value *weights, Value *bias) {
  const Dims in = static_dims(x), w = static_dims(weights);
  const i64 depth = w[1], units = w[0];
  const Dims pixels = in.size() == 4 ? in : Dims{product(in) / depth, 1, 1, depth};
  Value *y = conv2d(e, e.reshape(x, pixels), e.reshape(weights, {units, 1, 1, depth}), bias, {});
  Dims out = in;
  out.back() = units;
  return e.reshape(y, out);
}

/// A constant, as it is or as a quantized program stores it.
bool is_weight(const Value *v) {
  if (constant_of(v))
    return true;
  const ir::Op *p = v->producer();
  return p && aten::has_affine_form(p->opcode()) && constant_of(p->operand(0));
}

Value *linear(Emit &e) {
  Value *x = e.arg(0), *w = e.arg(1), *bias = e.arg(2);
  if (w->type().rank() != 2 || x->type().rank() < 1)
    return e.unsupported("with a weight that is no matrix", "use torch.matmul");
  if (!is_float(x))
    return e.unsupported("of integers", "use torch.matmul, or quantize the model");
  const bool fits = bias && bias->type().rank() == 1 && bias->type().dim(0) == w->type().dim(0);
  if (is_weight(w) && (!bias || (fits && is_weight(bias))))
    return by_weights(e, x, w, bias);
  const Dims in = static_dims(x);
  const i64 depth = in.back(), units = w->type().dim(0).value();
  Value *y = e.matmul(e.reshape(x, {1, product(in) / depth, depth}),
                      e.reshape(e.transpose(w, {1, 0}), {1, depth, units}));
  Dims out = in;
  out.back() = units;
  y = e.reshape(y, out);
  return bias ? e.add(y, bias) : y;
}

Value *matmul(Emit &e) {
  Value *x = e.arg(0), *y = e.arg(1);
  if (x->type().rank() < 2 || y->type().rank() < 2)
    return e.unsupported("with a vector operand", "unsqueeze it to a matrix");
  const ElementType element = e.element();
  if (!is_float(x)) { // whole numbers up to 2^24 are exact in f32
    x = e.cast(e.widened(x), ElementType::F32);
    y = e.cast(e.widened(y), ElementType::F32);
  }
  const Dims a = static_dims(x), b = static_dims(y), out = static_dims(e.type());
  const i64 rows = a[a.size() - 2], depth = a.back(), columns = b.back();
  const auto batch_of = [](const Dims &d) { return std::span(d).first(d.size() - 2); };
  if (product(batch_of(b)) == 1) {
    // One matrix for all: the batch is more rows.
    if (constant_of(y) && y->type().rank() == 2)
      return e.cast(by_weights(e, x, e.transpose(y, {1, 0}), nullptr), element);
    Value *p =
        e.matmul(e.reshape(x, {1, product(a) / depth, depth}), e.reshape(y, {1, depth, columns}));
    return e.cast(e.reshape(p, out), element);
  }
  const auto batched = [&](Value *v, i64 r, i64 c) {
    Dims wide(out.begin(), out.end() - 2);
    const i64 n = product(wide);
    wide.push_back(r);
    wide.push_back(c);
    return e.reshape(e.broadcast(v, wide), {n, r, c});
  };
  Value *p = e.matmul(batched(x, rows, depth), batched(y, depth, columns));
  return e.cast(e.reshape(p, out), element);
}

} // namespace

void add_matmul_rules(pass::PatternSet &set) {
  set.add("linear", {a::linear}, lower<linear>);
  set.add("matmul", {a::matmul}, lower<matmul>);
}

} // namespace chute::tosa

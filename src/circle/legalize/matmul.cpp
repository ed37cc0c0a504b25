// linear and matmul: FULLY_CONNECTED where one side is a matrix of weights, else BATCH_MATMUL.
#include "circle/legalize/emit.h"

namespace chute::circle {

namespace {

namespace a = aten::op;

Value *fully_connected(Emit &e, Value *x, Value *weights, Value *bias) {
  const NamedAttr keep{"keep_num_dims", of(true)};
  Value *operands[] = {x, weights, bias};
  if (x->type().rank() >= 2) {
    SymDims shape(x->type().shape().begin(), x->type().shape().end());
    shape.back() = weights->type().dim(0);
    const Type type = e.context().tensor_type(x->type().element(), shape);
    return e.typed(op::FULLY_CONNECTED, operands, std::span(&keep, 1), std::span(&type, 1))
        ->result();
  }
  // Runtimes take a vector only as a matrix of one row.
  operands[0] = e.reshape(x, SymDims{1, x->type().dim(0)});
  Value *row = e(op::FULLY_CONNECTED, operands, std::span(&keep, 1));
  return e.reshape(row, SymDims{weights->type().dim(0)});
}

/// FULLY_CONNECTED takes a bias of one value per unit.
bool fits_bias(const Value *bias, const Value *weights) {
  return bias->type().rank() == 1 && bias->type().dim(0) == weights->type().dim(0);
}

Value *linear(Emit &e) {
  Value *x = e.arg(0), *w = e.arg(1), *bias = e.arg(2);
  if (w->type().rank() != 2 || x->type().rank() < 1)
    return e.unsupported("with a weight that is no matrix", "use torch.matmul");
  if (!ir::is_float(e.element())) { // FULLY_CONNECTED has no integers but quantized ones
    Value *rows = x;
    if (x->type().rank() == 1)
      rows = e.reshape(x, SymDims{1, x->type().dim(0)});
    SymDims shape(rows->type().shape().begin(), rows->type().shape().end());
    shape.back() = w->type().dim(0);
    Value *y = e.typed(op::BATCH_MATMUL, {rows, e.transpose(w, {1, 0})}, {},
                       e.context().tensor_type(e.element(), shape));
    y = e.reshape(y, e.type().shape());
    return bias ? e.add(y, bias) : y;
  }
  if (!bias || fits_bias(bias, w))
    return fully_connected(e, x, w, bias);
  return e.add(fully_connected(e, x, w, nullptr), bias);
}

Value *matmul(Emit &e) {
  Value *x = e.arg(0), *y = e.arg(1);
  if (x->type().rank() < 2 || y->type().rank() < 2)
    return e.unsupported("with a vector operand", "unsqueeze it to a matrix");
  if (constant_of(y) && y->type().rank() == 2 && ir::is_float(e.element()))
    return fully_connected(e, x, e.transpose(y, {1, 0}), nullptr);
  return e.typed(op::BATCH_MATMUL, {x, y}, {}, e.type());
}

} // namespace

void add_matmul_rules(pass::PatternSet &set) {
  set.add("linear", {a::linear}, lower<linear>);
  set.add("matmul", {a::matmul}, lower<matmul>);
}

} // namespace chute::circle

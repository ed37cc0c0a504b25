// tosa-fold-scale: a constant factor or addend per channel behind a convolution moves into its
// constant weight and bias (batch normalization in inference).
//
//   mul(conv(x, w, b), c)  → conv(x, w * c, b * c)
//   add(conv(x, w, b), c)  → conv(x, w, b + c)
//   sub(conv(x, w, b), c)  → conv(x, w, b - c)
//
// `c` has one element, or one per channel along the last dimension. Computed in f64, rounded once.
// Illegal: a convolution whose result others use, or of integers; a constant that varies elsewhere.
#include "ir/element_convert.h"
#include "tosa/passes.h"
#include "tosa/passes/match.h"

namespace chute::tosa {

namespace {

bool is_convolution(OpCode c) {
  return c == op::CONV2D || c == op::CONV3D || c == op::DEPTHWISE_CONV2D ||
         c == op::TRANSPOSE_CONV2D;
}

std::vector<double> elements(const ir::Constant &c) {
  const ElementType e = c.type.element();
  std::vector<std::byte> bytes(c.dense_bytes());
  c.copy_dense(bytes.data());
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  std::vector<double> out(static_cast<size_t>(c.num_elements()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::load_element(e, bytes.data() + i * size);
  return out;
}

Value *constant(Rewriter &rw, Op &before, Type type, const std::vector<double> &values) {
  std::byte *bytes = nullptr;
  const ir::Constant *c = rw.graph().add_buffer(type, &bytes);
  const auto size = static_cast<size_t>(ir::element_bytes(type.element()));
  for (size_t i = 0; i < values.size(); ++i)
    ir::store_element(type.element(), values[i], bytes + i * size);
  return rw.before(before).constant(c);
}

/// Per output channel: `c` widened; nothing when it varies along other dimensions.
std::optional<std::vector<double>> per_channel(const ir::Constant &c, i64 channels) {
  const i64 n = c.num_elements();
  const bool last = c.type.rank() > 0 && c.type.dim(c.type.rank() - 1) == SymInt(channels);
  if (n != 1 && !(n == channels && last))
    return {};
  std::vector<double> v = elements(c);
  v.resize(static_cast<size_t>(channels), v[0]);
  return v;
}

bool fold(Op &op, Rewriter &rw) {
  const bool commutes = op.opcode() != op::SUB;
  Op *conv = nullptr;
  const ir::Constant *factor = nullptr;
  for (u32 i = 0; i < (commutes ? 2 : 1) && !conv; ++i) {
    Op *p = op.operand(i)->producer();
    if (p && is_convolution(p->opcode()) && op.operand(i)->has_one_use()) {
      conv = p;
      factor = constant_of(op.operand(1 - i));
    }
  }
  if (!conv || !factor || !factor->has_data || !ir::is_float(factor->type.element()) ||
      op.result()->type() != conv->result()->type())
    return false;
  const ir::Constant *w = constant_of(conv->operand(1)), *b = constant_of(conv->operand(2));
  if (!w || !b || !w->has_data || !b->has_data) {
    rw.reject("weights computed at run time");
    return false;
  }
  const i64 channels = op.result()->type().dim(op.result()->type().rank() - 1).value();
  const auto c = per_channel(*factor, channels);
  auto bias = per_channel(*b, channels);
  if (!c || !bias)
    return false;
  Value *weight = conv->operand(1);
  if (op.opcode() == op::MUL) {
    std::vector<double> values = elements(*w);
    // Output channels are the first dimension, or the last two of a depthwise weight.
    const size_t inner =
        conv->opcode() == op::DEPTHWISE_CONV2D ? 1 : values.size() / static_cast<size_t>(channels);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] *= (*c)[i / inner % static_cast<size_t>(channels)];
    weight = constant(rw, op, w->type, values);
  }
  for (size_t i = 0; i < bias->size(); ++i)
    (*bias)[i] = op.opcode() == op::MUL   ? (*bias)[i] * (*c)[i]
                 : op.opcode() == op::ADD ? (*bias)[i] + (*c)[i]
                                          : (*bias)[i] - (*c)[i];
  const Type bias_type = rw.context().tensor_type(b->type.element(), {SymInt(channels)});
  std::vector<Value *> operands{conv->operand(0), weight, constant(rw, op, bias_type, *bias),
                                conv->operand(3), conv->operand(4)};
  const std::vector<Attr> attrs(conv->attrs().begin(), conv->attrs().end());
  const Type type = op.result()->type();
  Op *made = rw.graph().create(conv->opcode(), operands, attrs, std::span(&type, 1),
                               rw.graph().locations().merge(conv->loc(), op.loc()));
  rw.graph().insert_before(*op.parent(), &op, made);
  rw.replace(op, made->result());
  return true;
}

} // namespace

void fold_scale(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("fold-scale", {op::MUL, op::ADD, op::SUB}, fold);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::tosa

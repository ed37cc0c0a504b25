// fold-batch-norm: constant per-channel arithmetic after a convolution or FULLY_CONNECTED moves
// into its weights and bias.
//
//   mul(conv(x, w, b), s)   → conv(x, w * s, b * s)       s: one number, or one per output channel
//   add(conv(x, w, b), t)   → conv(x, w, b + t)           sub likewise
//   add(fully_connected(x, w), t) → fully_connected(x, w, t)
//
// A RESHAPE between the two that keeps the channels last is looked through. Products and sums are
// computed in double and rounded once.
//
// Left alone: a convolution with an activation or with other users, weights that are no f32
// constants, and weights of more than 4096 elements that something else uses too (they would be
// stored twice).
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

/// Positions of filter and bias, and the filter's axis of output channels.
struct Weighted {
  u32 filter;
  u32 bias;
  size_t channel_axis;
};

std::optional<Weighted> weighted(OpCode c) {
  if (c == op::CONV_2D || c == op::FULLY_CONNECTED)
    return Weighted{1, 2, 0};
  if (c == op::DEPTHWISE_CONV_2D)
    return Weighted{1, 2, 3};
  if (c == op::TRANSPOSE_CONV)
    return Weighted{1, 3, 0};
  return {};
}

std::optional<std::vector<float>> floats_of(const Value *v) {
  const ir::Constant *c = constant_of(v);
  if (!c || !c->has_data || c->type.element() != ElementType::F32)
    return {};
  std::vector<float> out(static_cast<size_t>(c->num_elements()));
  c->copy_dense(reinterpret_cast<std::byte *>(out.data()));
  return out;
}

bool fold(Op &op, Rewriter &rw) {
  if (has_activation(op) || !is_f32(op.result()))
    return false;
  u32 side = 0;
  if (constant_of(op.operand(0)))
    side = 1;
  if (op.opcode() == op::SUB && side != 0)
    return false;
  Value *input = op.operand(side), *other = op.operand(1 - side);
  if (input->type() != op.result()->type() || input->type().rank() < 2 || !input->has_one_use())
    return false;
  Op *conv = input->producer();
  if (conv && conv->opcode() == op::RESHAPE) {
    Value *inner = conv->operand(0);
    if (!inner->has_one_use() || inner->type().rank() < 2 ||
        inner->type().shape().back() != input->type().shape().back())
      return false;
    conv = inner->producer();
  }
  const std::optional<Weighted> at = conv ? weighted(conv->opcode()) : std::nullopt;
  if (!at || has_activation(*conv))
    return false;
  const SymInt last = input->type().shape().back();
  if (last.is_symbolic())
    return false;
  const auto channels = static_cast<size_t>(last.value());
  const std::optional<std::vector<float>> factor = per_last(other, channels);
  if (!factor)
    return false;
  Value *filter = conv->operand(at->filter);
  Value *bias = at->bias < conv->num_operands() ? conv->operand(at->bias) : nullptr;
  if (!bias && at->bias >= conv->num_operands())
    return false;
  std::vector<float> shift(channels, 0.0f);
  if (bias) {
    std::optional<std::vector<float>> given = per_last(bias, channels);
    if (!given)
      return false;
    shift = std::move(*given);
  }
  if (op.opcode() == op::MUL) {
    if (!may_duplicate(filter)) {
      rw.reject("the weights have other users");
      return false;
    }
    std::optional<std::vector<float>> w = floats_of(filter);
    if (!w)
      return false;
    size_t inner = 1;
    for (size_t d = at->channel_axis + 1; d < static_cast<size_t>(filter->type().rank()); ++d)
      inner *= static_cast<size_t>(filter->type().dim(static_cast<int>(d)).value());
    for (size_t i = 0; i < w->size(); ++i)
      (*w)[i] = static_cast<float>(double{(*w)[i]} * double{(*factor)[i / inner % channels]});
    rw.graph().set_operand(conv, at->filter, f32_constant(rw, *conv, filter->type(), *w));
  }
  for (size_t c = 0; c < channels; ++c) {
    const double b = shift[c], f = (*factor)[c];
    shift[c] = static_cast<float>(op.opcode() == op::MUL   ? b * f
                                  : op.opcode() == op::SUB ? b - f
                                                           : b + f);
  }
  if (bias || op.opcode() != op::MUL) {
    const Type type = rw.context().tensor_type(ElementType::F32, {SymInt(last.value())});
    rw.graph().set_operand(conv, at->bias, f32_constant(rw, *conv, type, shift));
  }
  if (op.result()->name())
    rw.graph().set_name(input, op.result()->name());
  rw.replace(op, input);
  return true;
}

} // namespace

void add_channel_rules(pass::PatternSet &set) {
  set.add("fold-channel-arithmetic", {op::MUL, op::ADD, op::SUB}, fold);
}

void fold_batch_norm(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_channel_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle

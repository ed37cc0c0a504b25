// Bodies of wrap_with_autocast take the node's place, so the conversions that the autocast mode
// made underneath the recorded operators are written out here. Which operators convert, and to
// what, depends on the device (torch.amp's op reference); the recorded result types tell it
// instead.

#include "pt2/import.h"

#include "aten/ops.h"
#include "ir/builder.h"
#include "pt2/dtype.h"

#include <algorithm>

namespace chute::pt2 {

using ir::ElementType;

namespace {

namespace op = aten::op;

/// Operators that autocast runs in its lower precision. For these even operands that do not decide
/// the result's type (a bias, an attention mask) are converted.
constexpr ir::OpCode kLowerPrecision[] = {
    op::linear,
    op::matmul,
    op::mm,
    op::bmm,
    op::mv,
    op::dot,
    op::vdot,
    op::addmm,
    op::addmv,
    op::addr,
    op::addbmm,
    op::baddbmm,
    op::bilinear,
    op::chain_matmul,
    op::einsum,
    op::conv1d,
    op::conv1d_padding,
    op::conv2d,
    op::conv2d_padding,
    op::conv3d,
    op::conv3d_padding,
    op::conv_tbc,
    op::conv_transpose1d,
    op::conv_transpose2d_input,
    op::conv_transpose3d_input,
    op::convolution,
    op::u_convolution,
    op::prelu,
    op::scaled_dot_product_attention,
    op::gru_input,
    op::gru_cell,
    op::lstm_input,
    op::lstm_cell,
    op::rnn_relu_input,
    op::rnn_tanh_input,
    op::rnn_tanh_cell,
};

/// Autocast leaves f64 alone.
bool eligible(const ir::Value *v) {
  if (!v || !v->type().is_tensor())
    return false;
  const ElementType e = v->type().element();
  return e == ElementType::F32 || e == ElementType::F16 || e == ElementType::BF16;
}

} // namespace

/// What a wrap_with_autocast node sets: (device, dtype, enabled, cache, graph, operands…).
ElementType Importer::autocast_element(const Decoded &d, const DecodedNode &n, u32 graph) const {
  if (graph < 3)
    return autocast_;
  const auto item = [&](u32 i) -> const Item & { return d.inputs[n.first_input + i].value; };
  if (item(2).tag != ArgTag::Bool || !item(2).b)
    return ElementType::None;
  if (item(1).tag == ArgTag::ScalarType)
    if (const auto e = element_of_code(item(1).i))
      return *e;
  const bool cpu =
      (item(0).tag == ArgTag::String || item(0).tag == ArgTag::Device) && item(0).string() == "cpu";
  return cpu ? ElementType::BF16 : ElementType::F16;
}

void Importer::apply_autocast(ir::Op *op) {
  if (op->num_results() == 0 || !op->result(0)->type().is_tensor())
    return;
  const ElementType recorded = op->result(0)->type().element();
  if (recorded != autocast_ && recorded != ElementType::F32)
    return;
  const auto agrees = [&] {
    std::vector<ir::Type> types;
    return op->def().infer(*op, graph_, types) && !types.empty() && types[0].is_tensor() &&
           types[0].element() == recorded;
  };
  const bool lower = recorded == autocast_ &&
                     std::ranges::find(kLowerPrecision, op->opcode()) != std::end(kLowerPrecision);
  if (!lower && (!op->def().infer || agrees()))
    return;
  ir::Builder builder(graph_, *region_);
  builder.set_loc(loc_);
  const Values before = [&] {
    Values all;
    for (u32 i = 0; i < op->num_operands(); ++i)
      all.push_back(op->operand(i));
    return all;
  }();
  for (u32 i = 0; i < op->num_operands(); ++i)
    if (eligible(before[i]) && before[i]->type().element() != recorded)
      graph_.set_operand(
          op, i,
          builder.create(op::u_to_copy, {before[i]}, {{"dtype", ir::Attr::of_element(recorded)}}));
  // Not what the mode did: verification and normalize say what is wrong with the record.
  if (!lower && !agrees())
    for (u32 i = 0; i < op->num_operands(); ++i)
      if (op->operand(i) != before[i])
        graph_.set_operand(op, i, before[i]);
}

} // namespace chute::pt2

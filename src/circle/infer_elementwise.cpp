// Elementwise operators, casts, selections and the operators without a rule.
#include "circle/infer_support.h"

namespace chute::circle {

using ir::ElementType;

Status infer_unset(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return Inference{op, graph, out}.unknown("the table has no inference rule for this operator");
}

Status infer_first(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  // The table names the tensor that sets the type first, except for `stateful` rows, which have no
  // rule.
  return in.moved(0, to_dims(in.type(0).shape()));
}

Status infer_unary(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  return in.give(in.type(0).element(), in.type(0).shape());
}

namespace {
Status same_elements(const Inference &in, u32 a, u32 b) {
  if (in.type(a).element() != in.type(b).element())
    return in.bad("operands have different element types, " +
                  std::string(ir::element_type_name(in.type(a).element())) + " and " +
                  std::string(ir::element_type_name(in.type(b).element())));
  return {};
}
} // namespace

Status infer_binary(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(same_elements(in, 0, 1));
  CIRCLE_TRY_TO(shape, in.broadcast(in.type(0).shape(), in.type(1).shape()));
  return in.give(in.type(0).element(), shape);
}

Status infer_compare(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY(same_elements(in, 0, 1));
  CIRCLE_TRY_TO(shape, in.broadcast(in.type(0).shape(), in.type(1).shape()));
  return in.give(ElementType::Bool, shape);
}

Status infer_logical(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  for (u32 i = 0; i < op.num_operands(); ++i)
    if (in.type(i).element() != ElementType::Bool)
      return in.bad("operands are of type bool");
  if (op.num_operands() == 1)
    return in.give(ElementType::Bool, in.type(0).shape());
  CIRCLE_TRY_TO(shape, in.broadcast(in.type(0).shape(), in.type(1).shape()));
  return in.give(ElementType::Bool, shape);
}

Status infer_prelu(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  CIRCLE_TRY_TO(shape, in.broadcast(in.type(0).shape(), in.type(1).shape()));
  return in.give(in.type(0).element(), shape);
}

Status infer_add_n(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  if (op.num_operands() == 0)
    return in.bad("needs an operand");
  const ir::Type first = op.operand(0)->type();
  for (u32 i = 1; i < op.num_operands(); ++i)
    if (op.operand(i)->type().element() != first.element() ||
        op.operand(i)->type().rank() != first.rank())
      return in.bad("operands have one shape and element type");
  return in.give(first.element(), first.shape());
}

Status infer_cast(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  // Writers that leave the options out mean "whatever the tensors say".
  if (op.attr("in_data_type").as_element() != in.type(0).element())
    return in.unknown("in_data_type is not the operand's element type");
  return in.give(op.attr("out_data_type").as_element(), in.type(0).shape());
}

Status infer_dequantize(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  return in.give(ElementType::F32, in.type(0).shape());
}

Status infer_select(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  if (in.type(0).element() != ElementType::Bool)
    return in.bad("the condition is of type bool");
  CIRCLE_TRY(same_elements(in, 1, 2));
  CIRCLE_TRY_TO(values, in.broadcast(in.type(1).shape(), in.type(2).shape()));
  // The first form of SELECT also takes a vector that picks whole rows.
  if (op.name() == "circle.select" && in.type(0).rank() == 1 && values.size() > 1)
    return in.give(in.type(1).element(), values);
  CIRCLE_TRY_TO(shape, in.broadcast(in.type(0).shape(), span_of(values)));
  return in.give(in.type(1).element(), shape);
}

Status infer_complex_part(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const ElementType e = in.type(0).element();
  if (!ir::is_complex(e))
    return in.bad("the operand is complex");
  return in.give(e == ElementType::C128 ? ElementType::F64 : ElementType::F32, in.type(0).shape());
}

Status infer_bucketize(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  return in.give(ElementType::I32, in.type(0).shape());
}

Status infer_random(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  const auto shape = integer_values(op.arg(0), graph);
  if (!shape)
    return in.unknown("the shape is a run-time value");
  return in.give(ElementType::F32, *shape);
}

} // namespace chute::circle

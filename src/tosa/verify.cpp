#include "tosa/verify.h"

#include "ir/context.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "ir/walk.h"
#include "pass/rewriter.h"
#include "tosa/infer.h"
#include "tosa/ops.h"
#include "tosa/reader.h"

namespace chute::tosa {

namespace {

using ir::Op;

/// Whether a declared type is one that the inferred one allows: products of f16 may stay f16,
/// dimensions that are known only at run time fit any.
bool agrees(const Op &op, ir::Type declared, ir::Type inferred) {
  const bool half = op.opcode() == op::MATMUL && declared.element() == ir::ElementType::F16 &&
                    op.operand(0)->type().element() == ir::ElementType::F16;
  if (declared.element() != inferred.element() && !half)
    return false;
  if (declared.rank() != inferred.rank())
    return false;
  for (int i = 0; i < declared.rank(); ++i) {
    const ir::SymInt a = declared.dim(i), b = inferred.dim(i);
    if (a.is_static() && b.is_static() && a != b)
      return false;
  }
  return true;
}

void check_contract(ir::Graph &graph, Op &op, Diagnostics &diagnostics) {
  if (!is_tosa(op.opcode()) || !op.def().infer)
    return;
  const auto complain = [&](std::string why) {
    diagnostics.add(
        pass::at_op(graph, op, ErrorKind::Failure, "tosa.operator.contract", std::move(why)));
  };
  std::vector<ir::Type> types;
  if (const Status s = op.def().infer(op, graph, types); !s) {
    if (s.error().code != kUnknownCode)
      complain(s.error().message);
    return;
  }
  for (u32 i = 0; i < op.num_results() && i < types.size(); ++i)
    if (!agrees(op, op.result(i)->type(), types[i]))
      complain("declares " + ir::print(graph.context(), op.result(i)->type()) +
               " where operands and attributes give " + ir::print(graph.context(), types[i]));
}

} // namespace

void verify(ir::Context &ctx, std::span<const std::byte> bytes, const Target &target,
            Diagnostics &diagnostics) {
  auto model = read_model(ctx, bytes, nullptr);
  if (!model) {
    diagnostics.add(std::move(model.error()));
    return;
  }
  const size_t errors = diagnostics.error_count();
  ir::verify(*model->graph, diagnostics);
  if (diagnostics.error_count() != errors)
    return;
  ir::walk(*model->graph, [&](Op &op) { check_contract(*model->graph, op, diagnostics); });
  validate(*model->graph, target, diagnostics);
}

} // namespace chute::tosa

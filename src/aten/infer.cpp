#include "aten/infer.h"

#include "aten/infer/args.h"

namespace chute::aten {

Status infer_unset(const ir::Op &op, ir::Graph &, std::vector<ir::Type> &) {
  return fail(ErrorKind::Failure, "aten.infer.none", "result types can not be computed",
              std::string(op.name()));
}

Status run_rule(InferRule rule, const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  InferArgs args(op, graph, out);
  if (args.bad())
    return args.failed();
  return rule(args);
}

} // namespace chute::aten

#include "aten/infer.h"

namespace chute::aten {

Status infer_unset(const ir::Op &op, ir::Graph &, std::vector<ir::Type> &) {
  return fail(ErrorKind::Failure, "aten.infer.none", "result types can not be computed",
              std::string(op.name()));
}

} // namespace chute::aten

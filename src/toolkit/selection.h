#pragma once

#include "toolkit/extract.h"

/// From a Selection to operators. Internal to extract.
namespace chute::toolkit {

/// One flag per operator of `ops`. Errors as for extract().
Result<std::vector<u8>> select_ops(const ir::Graph &graph, const std::vector<ir::Op *> &ops,
                                   const Selection &selection, WorkCounters &work);

} // namespace chute::toolkit

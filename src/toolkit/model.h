#pragma once

#include "circle/reader.h"

namespace chute::toolkit {

/// Leaves the main graph alone in the model, with one signature that says what its interface says
/// now; none where the file had none.
void keep_one_graph(circle::Model &model);

} // namespace chute::toolkit

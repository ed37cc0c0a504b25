#pragma once

#include "pass/pass.h"

#include <string>

namespace chute::pass {

/// The element type that stands for `e`; `e` itself where nothing changes.
using ElementMap = ir::ElementType (*)(ir::ElementType e);

/// Gives every tensor the element type that `map` says: arguments, results, constants (converted as
/// a cast would, whole numbers kept inside the new range) and element type attributes. One walk.
/// Returns the names and old types of the inputs and outputs that changed ("x f64, y f16"), empty
/// when none did.
std::string retype(PassContext &ctx, ElementMap map);

} // namespace chute::pass

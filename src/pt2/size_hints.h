#pragma once

#include "support/ints.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chute::pt2 {

/// The sizes that the example inputs had: for each symbol that stands alone somewhere in a
/// program's JSON ({"expr_str": "Symbol('s77', …)", "hint": {"as_int": 2}}) its name and hint, in
/// order of first appearance. Symbols without a hint (sizes that depend on data) are left out.
/// Linear in the text; malformed parts are passed over.
std::vector<std::pair<std::string, i64>> size_hints(std::string_view json);

} // namespace chute::pt2

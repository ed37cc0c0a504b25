#pragma once

#include "support/result.h"

#include <string>
#include <string_view>

namespace chute {

/// The whole file as text; "-" is standard input.
Result<std::string> read_text(const std::string &path);
/// Writes through a temporary file that is renamed; "-" is standard output.
Status write_text(const std::string &path, std::string_view text);

} // namespace chute

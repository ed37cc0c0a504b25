#pragma once

#include <cstddef>
#include <string_view>

namespace chute {

/// Hash of text for Boost's maps, which mix weak hashes again unless told not to (and whose own
/// string hash goes byte by byte).
struct ViewHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const;
};

} // namespace chute

#pragma once

#include "support/ints.h"

#include <string_view>

namespace chute::cli {

/// A one-line progress display on standard error: only on a terminal, only for work that lasts
/// longer than a second, erased at the end. `quiet` silences it.
class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  /// Names the phase that begins. Cheap; may be called often.
  void phase(std::string_view name);

private:
  bool on_;
  bool shown_ = false;
  i64 start_us_;
};

} // namespace chute::cli

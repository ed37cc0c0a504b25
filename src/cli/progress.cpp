#include "cli/progress.h"

#include "support/trace.h"

#include <cstdio>
#include <unistd.h>

namespace chute::cli {

namespace {
constexpr i64 kQuietMicroseconds = 1'000'000;
}

Progress::Progress(bool quiet) : on_(!quiet && isatty(STDERR_FILENO)), start_us_(Trace::now_us()) {}

Progress::~Progress() {
  if (shown_)
    std::fputs("\r\033[K", stderr);
}

void Progress::phase(std::string_view name) {
  if (!on_)
    return;
  const i64 elapsed = Trace::now_us() - start_us_;
  if (elapsed < kQuietMicroseconds)
    return;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%6.1f s  %.*s", static_cast<double>(elapsed) * 1e-6,
               static_cast<int>(name.size()), name.data());
}

} // namespace chute::cli

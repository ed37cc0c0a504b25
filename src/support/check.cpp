#include "support/check.h"

#include <cstdio>
#include <cstdlib>

namespace chute {

void check_failed(const char *condition, const char *why, const char *file, int line) {
  std::fprintf(stderr, "chute: internal check failed at %s:%d: %s (%s)\n", file, line, condition,
               why);
  std::abort();
}

} // namespace chute

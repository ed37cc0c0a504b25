#pragma once

/// An internal invariant. On in every build: a violated one means a fault in chute, never bad
/// input. Prints the condition, the reason and the place, then aborts.
#define CHUTE_CHECK(cond, why)                                                                     \
  (__builtin_expect(static_cast<bool>(cond), 1)                                                    \
       ? static_cast<void>(0)                                                                      \
       : ::chute::check_failed(#cond, why, __FILE__, __LINE__))

namespace chute {
[[noreturn]] void check_failed(const char *condition, const char *why, const char *file, int line);
}

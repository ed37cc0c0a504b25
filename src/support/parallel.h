#pragma once

#include "support/function_ref.h"
#include "support/ints.h"

namespace chute {

/// Runs `body(begin, end)` over [0, n) cut at multiples of `grain`. The cuts depend on `n` and
/// `grain` alone, so a body whose result depends on where it is cut still gives the same bits for
/// every number of threads. Bodies write disjoint memory. An exception of a body reaches the
/// caller.
void parallel_for(i64 n, i64 grain, FunctionRef<void(i64 begin, i64 end)> body);

/// Runs `body` with at most `threads` threads for the parallel_for calls inside (0: all cores).
void with_threads(int threads, FunctionRef<void()> body);

} // namespace chute

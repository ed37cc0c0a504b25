#include "support/parallel.h"

#include <algorithm>
#include <optional>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace chute {

void parallel_for(i64 n, i64 grain, FunctionRef<void(i64, i64)> body) {
  if (n <= 0)
    return;
  grain = std::max<i64>(grain, 1);
  const i64 chunks = (n - 1) / grain + 1;
  const auto run = [&](i64 chunk) { body(chunk * grain, std::min(n, (chunk + 1) * grain)); };
  if (chunks == 1) {
    run(0);
    return;
  }
  if (tbb::this_task_arena::max_concurrency() == 1) {
    for (i64 chunk = 0; chunk < chunks; ++chunk)
      run(chunk);
    return;
  }
  tbb::parallel_for(tbb::blocked_range<i64>(0, chunks), [&](const tbb::blocked_range<i64> &r) {
    for (i64 chunk = r.begin(); chunk != r.end(); ++chunk)
      run(chunk);
  });
}

void with_threads(int threads, FunctionRef<void()> body) {
  // More threads than cores have to be allowed first, or TBB prints a warning and takes fewer.
  std::optional<tbb::global_control> limit;
  if (threads > static_cast<int>(tbb::global_control::active_value(
                    tbb::global_control::max_allowed_parallelism)))
    limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  tbb::task_arena arena(threads > 0 ? threads : tbb::task_arena::automatic);
  arena.execute([&] { body(); });
}

} // namespace chute

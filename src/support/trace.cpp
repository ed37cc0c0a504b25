#include "support/trace.h"

#include "support/diag.h"

#include <functional>
#include <thread>

namespace chute {

Trace &Trace::global() {
  static Trace trace;
  return trace;
}

void Trace::record(std::string_view name, i64 start_us, i64 duration_us) {
  const u64 thread = std::hash<std::thread::id>{}(std::this_thread::get_id());
  const std::lock_guard lock(mutex_);
  events_.push_back({std::string(name), start_us, duration_us, thread});
}

std::string Trace::to_json() const {
  const std::lock_guard lock(mutex_);
  std::vector<u64> threads; // small numbers in order of appearance instead of raw handles
  std::string out = "{\"traceEvents\":[";
  const i64 origin = events_.empty() ? 0 : events_.front().start_us;
  i64 first = origin;
  for (const Event &e : events_)
    first = std::min(first, e.start_us);
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event &e = events_[i];
    size_t tid = 0;
    while (tid < threads.size() && threads[tid] != e.thread)
      ++tid;
    if (tid == threads.size())
      threads.push_back(e.thread);
    out += (i ? ",\n" : "\n");
    out += "{\"ph\":\"X\",\"pid\":1,\"tid\":" + std::to_string(tid) +
           ",\"name\":" + json_quote(e.name) + ",\"ts\":" + std::to_string(e.start_us - first) +
           ",\"dur\":" + std::to_string(e.duration_us) + "}";
  }
  return out + "\n]}\n";
}

} // namespace chute

#pragma once

#include "support/ints.h"

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace chute {

/// Phases with their times, written as a Chrome/Perfetto trace (`--trace FILE`). Off unless
/// enabled: a scope then costs one branch. Scopes may be opened on any thread.
class Trace {
public:
  static Trace &global();
  void enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }
  void record(std::string_view name, i64 start_us, i64 duration_us);
  /// The events as one JSON document.
  std::string to_json() const;
  static i64 now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

private:
  struct Event {
    std::string name;
    i64 start_us;
    i64 duration_us;
    u64 thread;
  };
  bool enabled_ = false;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

class TraceScope {
public:
  explicit TraceScope(std::string_view name)
      : name_(name), start_(Trace::global().enabled() ? Trace::now_us() : 0) {}
  TraceScope(const TraceScope &) = delete;
  TraceScope &operator=(const TraceScope &) = delete;
  ~TraceScope() {
    if (Trace::global().enabled())
      Trace::global().record(name_, start_, Trace::now_us() - start_);
  }

private:
  std::string_view name_;
  i64 start_;
};

} // namespace chute

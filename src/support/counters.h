#pragma once

#include "support/ints.h"

namespace chute {

/// Work counters: what a pass or phase did, countable without a clock. The scaling test asserts
/// that each grows at most linearly with the graph (DESIGN rule 1). Plain integers: one instance
/// belongs to one thread; parallel phases sum their own into it.
struct WorkCounters {
  u64 ops_visited = 0;
  u64 patterns_tried = 0;
  u64 rewrites = 0;
  u64 enqueues = 0;
  u64 bytes_hashed = 0;
  u64 bytes_copied = 0;

  WorkCounters &operator+=(const WorkCounters &o) {
    ops_visited += o.ops_visited;
    patterns_tried += o.patterns_tried;
    rewrites += o.rewrites;
    enqueues += o.enqueues;
    bytes_hashed += o.bytes_hashed;
    bytes_copied += o.bytes_copied;
    return *this;
  }
};

} // namespace chute

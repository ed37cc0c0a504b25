#pragma once

#include "support/ints.h"

#include <algorithm>
#include <vector>

namespace chute {

/// The cheapest set of edges that parts one node of a network from another (Dinic 1970: augmenting
/// along shortest paths, all of one length at a time). No recursion.
class MinCut {
public:
  static constexpr i32 kSource = 0, kSink = 1;
  static constexpr i32 kUncuttable = 1 << 29;

  i32 add_node() {
    first_.push_back(-1);
    return static_cast<i32>(first_.size()) - 1;
  }
  void add_edge(i32 from, i32 to, i32 cost) {
    edges_.push_back({to, first_[static_cast<size_t>(from)], cost});
    first_[static_cast<size_t>(from)] = static_cast<i32>(edges_.size()) - 1;
    edges_.push_back({from, first_[static_cast<size_t>(to)], 0});
    first_[static_cast<size_t>(to)] = static_cast<i32>(edges_.size()) - 1;
  }
  size_t num_edges() const { return edges_.size() / 2; }

  /// The cost of the cheapest cut; -1 when finding it looks at more than `most` edges. `*work`
  /// counts them.
  i64 solve(u64 most, u64 *work) {
    i64 flow = 0;
    u64 looked = 0;
    while (level(looked)) {
      next_ = first_;
      for (i64 found; (found = augment(looked)) != 0;) {
        flow += found;
        if (looked > most)
          break;
      }
      if (looked > most) {
        *work += looked;
        return -1;
      }
    }
    *work += looked;
    return flow;
  }
  /// After solve(): whether the node is on the source's side of the cut that lies nearest to it.
  bool with_source(i32 node) const { return level_[static_cast<size_t>(node)] >= 0; }

private:
  struct Edge {
    i32 to;
    i32 next; ///< of the same node; its opposite is the index ^ 1
    i32 left;
  };
  Edge &edge(i32 i) { return edges_[static_cast<size_t>(i)]; }

  /// Distances from the source; false when the sink is out of reach.
  bool level(u64 &looked) {
    level_.assign(first_.size(), -1);
    level_[kSource] = 0;
    queue_.assign(1, kSource);
    for (size_t at = 0; at < queue_.size(); ++at) {
      const auto node = static_cast<size_t>(queue_[at]);
      for (i32 e = first_[node]; e >= 0; e = edge(e).next) {
        ++looked;
        const auto to = static_cast<size_t>(edge(e).to);
        if (edge(e).left > 0 && level_[to] < 0) {
          level_[to] = level_[node] + 1;
          queue_.push_back(edge(e).to);
        }
      }
    }
    return level_[kSink] >= 0;
  }

  /// One path along growing distances; what it carries, 0 when there is none.
  i64 augment(u64 &looked) {
    path_.clear();
    i32 node = kSource;
    while (node != kSink) {
      i32 &e = next_[static_cast<size_t>(node)];
      while (e >= 0 && !(edge(e).left > 0 && level_[static_cast<size_t>(edge(e).to)] ==
                                                 level_[static_cast<size_t>(node)] + 1)) {
        ++looked;
        e = edge(e).next;
      }
      if (e >= 0) {
        path_.push_back(e);
        node = edge(e).to;
        continue;
      }
      if (path_.empty())
        return 0;
      // A dead end: never again in this round.
      level_[static_cast<size_t>(node)] = -1;
      node = edge(path_.back() ^ 1).to;
      path_.pop_back();
    }
    i32 carried = kUncuttable;
    for (const i32 e : path_)
      carried = std::min(carried, edge(e).left);
    for (const i32 e : path_) {
      ++looked;
      edge(e).left -= carried;
      edge(e ^ 1).left += carried;
    }
    return carried;
  }

  std::vector<Edge> edges_;
  std::vector<i32> first_{-1, -1}, next_, level_, queue_, path_;
};

} // namespace chute

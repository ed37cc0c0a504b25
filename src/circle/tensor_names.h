#pragma once

#include "support/ints.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <deque>
#include <string>
#include <string_view>
#define XXH_INLINE_ALL
#include <xxhash.h>

/// Distinct names for what is written. Internal to the writer.
namespace chute::circle {

struct TextHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }
};

/// Gives the tensors of one subgraph distinct names.
class Names {
public:
  Names(std::deque<std::string> &own, size_t expected) : own_(own) { taken_.reserve(expected); }

  /// A name that the source file gave, though it may not be the only one.
  std::string_view keep(std::string_view name) {
    taken_.insert(name);
    return name;
  }

  std::string_view unique(std::string_view base) {
    if (base.empty())
      base = "tensor";
    if (taken_.insert(base).second)
      return base;
    u32 &next = next_suffix_[base];
    std::string candidate;
    do {
      candidate.assign(base);
      candidate += '_';
      candidate += std::to_string(++next);
    } while (taken_.contains(candidate));
    own_.push_back(std::move(candidate));
    taken_.insert(own_.back());
    return own_.back();
  }

private:
  std::deque<std::string> &own_;
  boost::unordered_flat_set<std::string_view, TextHash> taken_;
  boost::unordered_flat_map<std::string_view, u32, TextHash> next_suffix_;
};

} // namespace chute::circle

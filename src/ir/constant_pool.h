#pragma once

#include "ir/graph.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <span>
#include <vector>

namespace chute::ir {

/// Small constants that operators further down in the same region may use again: a rewrite that
/// goes through a region in program order need not make the same axes and bounds thousands of
/// times. The owner tells it of every constant that is erased.
class ConstantPool {
public:
  static constexpr size_t kMaxBytes = 64;

  /// The constant of that type and content, or null.
  Value *find(const Region &region, Type type, std::span<const std::byte> bytes) const;
  /// `value` must come before every operator that asks from now on.
  void add(const Region &region, Type type, std::span<const std::byte> bytes, Value *value);
  void erased(const Op &constant);

private:
  static u64 hash(const Region &region, Type type, std::span<const std::byte> bytes);
  struct Avalanching {
    using is_avalanching = void;
    size_t operator()(u64 h) const { return h; }
  };
  boost::unordered_flat_map<u64, Value *, Avalanching> values_; ///< by 64-bit hash; checked on use
  boost::unordered_flat_map<u32, u64> keys_;                    ///< by operator id
};

} // namespace chute::ir

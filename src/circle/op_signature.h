#pragma once

#include "circle/file_view.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <vector>

/// Tells operators of a file that have one contract: equal code and options, operands and results
/// of equal types, equal small constants. Networks repeat the same few hundred of them, so that
/// checking each once is checking all. Internal to the verifier.
namespace chute::circle {

class OpSignatures {
public:
  explicit OpSignatures(const FileView &file) : file_(file) {}

  /// Whether the contracts of a subgraph's operators follow from their signatures: no dynamic
  /// dimension, no sizes computed at run time.
  bool enter(u32 subgraph);
  /// A 128-bit hash of everything that the contract of an operator of that subgraph depends on.
  struct Key {
    u64 low = 0, high = 0;
    friend bool operator==(const Key &, const Key &) = default;
  };
  Key key(const ::circle::Operator &op);

private:
  u64 tensor_key(i32 tensor, bool by_value);

  const FileView &file_;
  const ::circle::SubGraph *sub_ = nullptr;
  std::vector<u64> keys_; // by tensor: of its type, and with its value; 0: not known yet
  std::vector<u64> words_;
};

struct KeyHash {
  using is_avalanching = void;
  size_t operator()(const OpSignatures::Key &k) const { return k.low; }
};
using KeySet = boost::unordered_flat_set<OpSignatures::Key, KeyHash>;

} // namespace chute::circle

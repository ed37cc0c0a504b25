#pragma once

#include "ir/type.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace chute::ir {

/// 128-bit content hash (XXH3) of a constant's element type, shape and row-major bytes.
struct ContentHash {
  u64 low = 0;
  u64 high = 0;
  friend bool operator==(const ContentHash &, const ContentHash &) = default;
};

/// Tensor data: a view of bytes with an owner that keeps them alive (a mapped file or a buffer).
/// The type's shape is static. Sub-byte element types take one byte per element here.
/// Owned by a Graph; immutable after it was made.
struct Constant {
  Type type;
  /// First element (storage offset applied). Null when `has_data` is false or there are no
  /// elements.
  const std::byte *data = nullptr;
  /// Element strides, one per dimension; empty means dense row-major. Stride 0 repeats (splat,
  /// expand); never negative. Every reachable element lies inside the owner's bytes (checked where
  /// the constant is made).
  std::span<const i64> strides;
  std::shared_ptr<const void> owner;
  /// False for fake or meta weights: the shape is known, the bytes are not in the file.
  bool has_data = true;
  u32 id = 0; ///< dense per Graph, in order of creation

  bool is_dense() const { return strides.empty(); }
  i64 num_elements() const { return type.num_elements(); }
  /// Bytes of the dense form.
  size_t dense_bytes() const {
    return static_cast<size_t>(num_elements()) * static_cast<size_t>(element_bytes(type.element()));
  }
  /// Dense row-major bytes; only when is_dense().
  std::span<const std::byte> bytes() const { return {data, dense_bytes()}; }
  /// Copies the row-major bytes into `out` (dense_bytes() long), whatever the strides.
  void copy_dense(std::byte *out) const;
  /// Computed on the first call and kept. Adds the bytes read to `bytes_hashed` when given.
  const ContentHash &hash(u64 *bytes_hashed = nullptr) const;
  bool hash_known() const { return hash_known_; }

  mutable ContentHash hash_;
  mutable bool hash_known_ = false;
};

/// Whether two constants have the same type and the same row-major bytes.
/// Equal views answer at once; otherwise by hash.
bool same_content(const Constant &a, const Constant &b, u64 *bytes_hashed = nullptr);

} // namespace chute::ir

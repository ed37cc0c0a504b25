#pragma once

#include "support/ints.h"

#include <array>
#include <memory>
#include <vector>

namespace chute {

/// Storage for many small objects of varying size that are freed one by one and all at once.
/// Sizes are rounded up to 16 bytes; a freed block goes to the list of its size and is reused by
/// the next request of that size. Blocks are 16-byte aligned. Destruction frees everything without
/// running destructors, in time proportional to the number of chunks.
class Slab {
public:
  Slab() = default;
  Slab(const Slab &) = delete;
  Slab &operator=(const Slab &) = delete;
  ~Slab();

  void *allocate(size_t bytes) {
    const size_t units = (bytes + kUnit - 1) / kUnit;
    in_use_ += units * kUnit;
    if (units < kClasses) {
      if (FreeBlock *block = free_[units]) {
        free_[units] = block->next;
        return block;
      }
      if (static_cast<size_t>(end_ - next_) >= units * kUnit) {
        char *block = next_;
        next_ += units * kUnit;
        return block;
      }
    }
    return allocate_slow(units);
  }

  void deallocate(void *block, size_t bytes) {
    const size_t units = (bytes + kUnit - 1) / kUnit;
    in_use_ -= units * kUnit;
    if (units >= kClasses)
      return; // large blocks are rare; they live until the slab dies
    auto *freed = static_cast<FreeBlock *>(block);
    freed->next = free_[units];
    free_[units] = freed;
  }

  /// Bytes handed out and not given back.
  size_t bytes_in_use() const { return in_use_; }

private:
  static constexpr size_t kUnit = 16;
  static constexpr size_t kClasses = 129; // blocks up to 2 KiB are recycled
  static constexpr size_t kChunk = size_t{1} << 18;
  static constexpr size_t kSmallChunks = 16; // before chunks grow
  struct FreeBlock {
    FreeBlock *next;
  };
  struct Chunk {
    char *data;
    size_t bytes;
  };

  void *allocate_slow(size_t units);

  char *next_ = nullptr;
  char *end_ = nullptr;
  size_t in_use_ = 0;
  std::array<FreeBlock *, kClasses> free_{};
  std::vector<Chunk> chunks_;
};

} // namespace chute

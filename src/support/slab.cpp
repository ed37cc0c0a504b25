#include "support/slab.h"

#include <new>

namespace chute {

Slab::~Slab() {
  for (char *chunk : chunks_)
    ::operator delete(chunk, std::align_val_t{kUnit});
}

void *Slab::allocate_slow(size_t units) {
  const size_t bytes = units * kUnit;
  if (bytes > kChunk / 4) {
    chunks_.push_back(static_cast<char *>(::operator new(bytes, std::align_val_t{kUnit})));
    return chunks_.back();
  }
  // The tail of the current chunk still serves small requests through its free list.
  if (const size_t rest = static_cast<size_t>(end_ - next_) / kUnit; rest != 0 && rest < kClasses) {
    auto *block = reinterpret_cast<FreeBlock *>(next_);
    block->next = free_[rest];
    free_[rest] = block;
  }
  chunks_.push_back(static_cast<char *>(::operator new(kChunk, std::align_val_t{kUnit})));
  next_ = chunks_.back() + bytes;
  end_ = chunks_.back() + kChunk;
  return chunks_.back();
}

} // namespace chute

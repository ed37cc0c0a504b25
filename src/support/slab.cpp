#include "support/slab.h"

#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace chute {

namespace {

/// Pages of this size save most of the address translation that a walk over millions of objects
/// costs.
constexpr size_t kHugePage = size_t{1} << 21;

char *new_chunk(size_t bytes) {
  const size_t alignment = bytes % kHugePage ? 16 : kHugePage;
  char *chunk = static_cast<char *>(::operator new(bytes, std::align_val_t{alignment}));
#if defined(__linux__)
  if (alignment == kHugePage)
    madvise(chunk, bytes, MADV_HUGEPAGE); // a wish: nothing depends on it
#endif
  return chunk;
}

} // namespace

Slab::~Slab() {
  for (const auto &[chunk, bytes] : chunks_)
    ::operator delete(chunk, std::align_val_t{bytes % kHugePage ? 16 : kHugePage});
}

void *Slab::allocate_slow(size_t units) {
  const size_t bytes = units * kUnit;
  if (bytes > kChunk / 4) {
    const size_t odd = bytes % kHugePage ? bytes : bytes + kUnit; // large blocks are not aligned
    chunks_.push_back({new_chunk(odd), odd});
    return chunks_.back().data;
  }
  // The tail of the current chunk still serves small requests through its free list.
  if (const size_t rest = static_cast<size_t>(end_ - next_) / kUnit; rest != 0 && rest < kClasses) {
    auto *block = reinterpret_cast<FreeBlock *>(next_);
    block->next = free_[rest];
    free_[rest] = block;
  }
  // Small graphs take small chunks, those of many operators whole huge pages.
  const size_t size = chunks_.size() < kSmallChunks ? kChunk : kHugePage;
  chunks_.push_back({new_chunk(size), size});
  next_ = chunks_.back().data + bytes;
  end_ = chunks_.back().data + size;
  return chunks_.back().data;
}

} // namespace chute

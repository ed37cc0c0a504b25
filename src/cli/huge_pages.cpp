// Tables of a million entries are looked into at random, and then most of the time goes to address
// translation. So the executable's large blocks ask for huge pages; the rest is malloc's.

#include <cstddef>
#include <cstdlib>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

// Sanitizers bring operators of their own.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

void *allocate(std::size_t bytes, std::size_t alignment) {
  void *block = nullptr;
  if (bytes >= kHugePage) {
    if (posix_memalign(&block, alignment > kHugePage ? alignment : kHugePage, bytes) != 0)
      return nullptr;
    static_cast<void>(madvise(block, bytes, MADV_HUGEPAGE)); // a wish: nothing depends on it
    return block;
  }
  if (alignment <= alignof(std::max_align_t))
    return std::malloc(bytes ? bytes : 1);
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

void *allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    if (void *block = allocate(bytes, alignment))
      return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler)
      throw std::bad_alloc();
    handler();
  }
}

} // namespace

// The array and nothrow forms of the standard library call these.
void *operator new(std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void *operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void *block) noexcept { std::free(block); }
void operator delete(void *block, std::size_t) noexcept { std::free(block); }
void operator delete(void *block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void *block, std::size_t, std::align_val_t) noexcept { std::free(block); }

#endif

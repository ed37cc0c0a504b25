#include "support/deflate.h"

#include <libdeflate.h>
#include <memory>

namespace chute {

bool inflate_raw(std::span<const std::byte> from, std::span<std::byte> to) {
  struct Free {
    void operator()(libdeflate_decompressor *d) const { libdeflate_free_decompressor(d); }
  };
  const std::unique_ptr<libdeflate_decompressor, Free> decompressor(
      libdeflate_alloc_decompressor());
  // Without a place for the actual size libdeflate takes anything but the exact one for an error.
  return decompressor &&
         libdeflate_deflate_decompress(decompressor.get(), from.data(), from.size(), to.data(),
                                       to.size(), nullptr) == LIBDEFLATE_SUCCESS;
}

u32 crc32_of(std::span<const std::byte> bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

} // namespace chute

#pragma once

#include "support/ints.h"

#include <cstddef>
#include <span>

namespace chute {

/// Inflates a raw deflate stream (RFC 1951, no header) into exactly `to.size()` bytes. False when
/// the stream is damaged, shorter, longer, or memory is short; `to` then holds anything.
bool inflate_raw(std::span<const std::byte> from, std::span<std::byte> to);

/// The checksum of zip and gzip (CRC-32, polynomial 0xEDB88320 reflected).
u32 crc32_of(std::span<const std::byte> bytes);

} // namespace chute

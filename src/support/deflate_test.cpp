#include "support/deflate.h"

#include <array>
#include <gtest/gtest.h>
#include <string_view>
#include <vector>

namespace chute {
namespace {

std::span<const std::byte> bytes_of(std::string_view s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

TEST(Deflate, ChecksumOfTheStandardsExample) {
  EXPECT_EQ(crc32_of(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32_of({}), 0u);
}

// A stored block: final bit, length 3, its complement, the bytes.
constexpr std::array<unsigned char, 8> kStored = {1, 3, 0, 0xFC, 0xFF, 'a', 'b', 'c'};

TEST(Deflate, InflatesExactlyWhatIsThere) {
  const auto stream = std::as_bytes(std::span(kStored));
  std::vector<std::byte> out(3);
  ASSERT_TRUE(inflate_raw(stream, out));
  EXPECT_EQ(out[2], std::byte{'c'});
  std::vector<std::byte> small(2), large(4);
  EXPECT_FALSE(inflate_raw(stream, small));
  EXPECT_FALSE(inflate_raw(stream, large));
  EXPECT_FALSE(inflate_raw(stream.first(6), out));
}

} // namespace
} // namespace chute

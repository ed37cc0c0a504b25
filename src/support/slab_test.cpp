#include "support/slab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace chute {
namespace {

TEST(Slab, RecyclesBlocksOfASize) {
  Slab slab;
  void *a = slab.allocate(40);
  void *b = slab.allocate(40);
  EXPECT_NE(a, b);
  slab.deallocate(a, 40);
  EXPECT_EQ(slab.allocate(33), a); // 33..48 bytes are one class
  EXPECT_NE(slab.allocate(40), a);
  EXPECT_EQ(slab.bytes_in_use(), 3u * 48);
}

TEST(Slab, LargeBlocks) {
  Slab slab;
  for (size_t bytes : {size_t{2049}, size_t{1} << 17, size_t{1} << 19}) {
    auto *p = static_cast<char *>(slab.allocate(bytes));
    std::memset(p, 1, bytes);
    slab.deallocate(p, bytes);
  }
  EXPECT_EQ(slab.bytes_in_use(), 0u);
}

/// Live blocks never overlap, are aligned and keep their content.
TEST(Slab, RandomTraffic) {
  struct Block {
    u8 *at;
    size_t bytes;
    u8 fill;
  };
  Slab slab;
  std::mt19937 random(7);
  std::vector<Block> live;
  size_t expected = 0;
  for (int step = 0; step < 200'000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      Block b{nullptr, 1 + random() % (random() % 100 == 0 ? 5000 : 400), static_cast<u8>(step)};
      b.at = static_cast<u8 *>(slab.allocate(b.bytes));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(b.at) % 16, 0u);
      std::memset(b.at, b.fill, b.bytes);
      expected += (b.bytes + 15) / 16 * 16;
      live.push_back(b);
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Block b = live.back();
      live.pop_back();
      ASSERT_EQ(b.at[0], b.fill);
      ASSERT_EQ(b.at[b.bytes - 1], b.fill);
      expected -= (b.bytes + 15) / 16 * 16;
      slab.deallocate(b.at, b.bytes);
    }
  }
  EXPECT_EQ(slab.bytes_in_use(), expected);
}

} // namespace
} // namespace chute

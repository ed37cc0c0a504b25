#include "ir/constant.h"

#include "support/check.h"
#include "support/mapped_file.h"

#include <cstring>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::ir {

namespace {

/// Constants from this size on leave memory again after they were hashed, where they are a file's.
constexpr size_t kStreamBytes = size_t{8} << 20;

/// Calls `emit(pointer, bytes)` for each longest contiguous run, in row-major order.
template <class Emit>
void for_each_run(const Constant &c, Emit &&emit) {
  const size_t item = static_cast<size_t>(element_bytes(c.type.element()));
  const auto shape = c.type.shape();
  const int rank = c.type.rank();
  if (c.num_elements() == 0)
    return;
  // Trailing dimensions that are dense form one run.
  i64 run = 1;
  int outer = rank;
  while (outer > 0) {
    const i64 extent = shape[static_cast<size_t>(outer - 1)].value();
    if (extent != 1 && c.strides[static_cast<size_t>(outer - 1)] != run)
      break;
    run *= extent;
    --outer;
  }
  std::vector<i64> counter(static_cast<size_t>(outer), 0);
  i64 offset = 0;
  for (;;) {
    emit(c.data + offset * static_cast<i64>(item), static_cast<size_t>(run) * item);
    int d = outer - 1;
    for (; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      offset += c.strides[i];
      if (++counter[i] < shape[i].value())
        break;
      offset -= c.strides[i] * counter[i];
      counter[i] = 0;
    }
    if (d < 0)
      return;
  }
}

} // namespace

void Constant::copy_dense(std::byte *out) const {
  CHUTE_CHECK(has_data, "the constant has no bytes");
  if (is_dense()) {
    if (const size_t n = dense_bytes())
      std::memcpy(out, data, n);
    return;
  }
  for_each_run(*this, [&](const std::byte *from, size_t n) {
    std::memcpy(out, from, n);
    out += n;
  });
}

const ContentHash &Constant::hash(u64 *bytes_hashed) const {
  if (hash_known_)
    return hash_;
  // Element type and shape seed the hash: [2,3] and [3,2] of equal bytes differ.
  u64 seed = static_cast<u64>(type.element());
  for (SymInt d : type.shape())
    seed = seed * 0x9E3779B97F4A7C15ull + static_cast<u64>(d.value()) + 1;
  XXH128_hash_t h;
  if (!has_data) {
    h = XXH3_128bits_withSeed(&id, sizeof(id), ~seed); // equal to itself only
  } else if (is_dense() && dense_bytes() >= kStreamBytes) {
    XXH3_state_t state{};
    XXH3_128bits_reset_withSeed(&state, seed);
    MappedFile::stream(bytes(), [&](std::span<const std::byte> part) {
      return XXH3_128bits_update(&state, part.data(), part.size()) == XXH_OK;
    });
    h = XXH3_128bits_digest(&state);
  } else if (is_dense()) {
    h = XXH3_128bits_withSeed(data, dense_bytes(), seed);
  } else {
    XXH3_state_t state{};
    XXH3_128bits_reset_withSeed(&state, seed);
    for_each_run(*this,
                 [&](const std::byte *from, size_t n) { XXH3_128bits_update(&state, from, n); });
    h = XXH3_128bits_digest(&state);
  }
  if (bytes_hashed)
    *bytes_hashed += has_data ? dense_bytes() : sizeof(id);
  hash_ = {h.low64, h.high64};
  hash_known_ = true;
  return hash_;
}

bool same_content(const Constant &a, const Constant &b, u64 *bytes_hashed) {
  if (&a == &b)
    return true;
  if (a.type != b.type || a.has_data != b.has_data || !a.has_data)
    return false;
  if (a.data == b.data &&
      std::equal(a.strides.begin(), a.strides.end(), b.strides.begin(), b.strides.end()))
    return true;
  return a.hash(bytes_hashed) == b.hash(bytes_hashed);
}

} // namespace chute::ir

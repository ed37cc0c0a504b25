#include "pt2/zip.h"

#include "support/deflate.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <numeric>

static_assert(std::endian::native == std::endian::little, "archives are read in place");

namespace chute::pt2 {

namespace {

constexpr u32 kEndSignature = 0x06054b50;
constexpr u32 kEnd64Signature = 0x06064b50;
constexpr u32 kLocator64Signature = 0x07064b50;
constexpr u32 kCentralSignature = 0x02014b50;
constexpr u32 kLocalSignature = 0x04034b50;
constexpr size_t kEndSize = 22, kLocator64Size = 20, kEnd64Size = 56, kCentralSize = 46,
                 kLocalSize = 30;

template <class T>
T load(const std::byte *p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}

std::string at(std::string_view name, u64 offset) {
  // Names come from the file; what a terminal could misread is replaced.
  std::string out;
  for (const char c : name.substr(0, 200))
    out += c >= ' ' && c < 0x7f ? c : '?';
  return out + "@" + std::to_string(offset);
}

tl::unexpected<Diagnostic> bad(const char *code, const char *message, std::string_view name,
                               u64 offset, std::string hint = {}) {
  return fail(ErrorKind::BadInput, code, message, at(name, offset), std::move(hint));
}

constexpr const char *kTruncatedHint = "the file is cut short or not a zip archive; copy it again";

/// Where the central directory lies.
struct Directory {
  u64 offset = 0;
  u64 size = 0;
  u64 count = 0;
};

Result<Directory> find_directory(std::span<const std::byte> a) {
  if (a.size() < kEndSize)
    return bad("pt2.zip.truncated", "the file is too short for a zip archive", {}, a.size(),
               kTruncatedHint);
  // The end record is last, followed by a comment of at most 65535 bytes.
  const u64 lowest = a.size() - std::min<u64>(a.size(), kEndSize + 0xFFFF);
  u64 end = a.size() - kEndSize;
  for (;; --end) {
    if (load<u32>(&a[end]) == kEndSignature && end + kEndSize + load<u16>(&a[end + 20]) == a.size())
      break;
    if (end == lowest)
      return bad("pt2.zip.truncated", "no end-of-archive record", {}, a.size(), kTruncatedHint);
  }
  const std::byte *e = &a[end];
  Directory d{load<u32>(e + 16), load<u32>(e + 12), load<u16>(e + 10)};
  if (load<u16>(e + 4) != load<u16>(e + 6))
    return bad("pt2.zip.volumes", "archives in several volumes are not supported", {}, end);
  if (end >= kLocator64Size && load<u32>(&a[end - kLocator64Size]) == kLocator64Signature) {
    const u64 end64 = load<u64>(&a[end - kLocator64Size + 8]);
    if (end64 > end - kLocator64Size || end - kLocator64Size - end64 < kEnd64Size ||
        load<u32>(&a[end64]) != kEnd64Signature)
      return bad("pt2.zip.directory", "the zip64 end record is not where its locator says", {},
                 end - kLocator64Size);
    const std::byte *e64 = &a[end64];
    // Fields of the plain record that hold their maximum stand for the wide ones.
    if (d.count == 0xFFFF)
      d.count = load<u64>(e64 + 32);
    if (d.size == 0xFFFFFFFF)
      d.size = load<u64>(e64 + 40);
    if (d.offset == 0xFFFFFFFF)
      d.offset = load<u64>(e64 + 48);
  }
  if (d.offset > end || d.size > end - d.offset || d.count > d.size / kCentralSize)
    return bad("pt2.zip.directory", "the central directory does not lie inside the file", {}, end);
  return d;
}

/// Replaces 32-bit fields that hold their maximum by the zip64 extra field's, which lists only
/// those.
bool apply_zip64(std::span<const std::byte> extra, ZipEntry &e) {
  const bool wide_size = e.size == 0xFFFFFFFF, wide_compressed = e.compressed == 0xFFFFFFFF,
             wide_header = e.header == 0xFFFFFFFF;
  if (!wide_size && !wide_compressed && !wide_header)
    return true;
  while (extra.size() >= 4) {
    const size_t id = load<u16>(extra.data()), size = load<u16>(extra.data() + 2);
    extra = extra.subspan(4);
    if (size > extra.size())
      return false;
    if (id != 1) {
      extra = extra.subspan(size);
      continue;
    }
    std::span<const std::byte> field = extra.first(size);
    for (auto [wanted, to] : {std::pair{wide_size, &e.size},
                              {wide_compressed, &e.compressed},
                              {wide_header, &e.header}}) {
      if (!wanted)
        continue;
      if (field.size() < 8)
        return false;
      *to = load<u64>(field.data());
      field = field.subspan(8);
    }
    return true;
  }
  return true; // a member of exactly 2^32-1 bytes
}

} // namespace

Result<Zip> Zip::open(std::span<const std::byte> archive, std::shared_ptr<const void> owner,
                      u64 max_inflated) {
  Result<Directory> found = find_directory(archive);
  if (!found)
    return tl::unexpected(found.error());
  Zip zip;
  zip.archive_ = archive;
  zip.owner_ = std::move(owner);
  zip.max_inflated_ = max_inflated;
  zip.directory_ = found->offset;
  u64 p = found->offset;
  const u64 end = found->offset + found->size;
  zip.entries_.reserve(found->count);
  for (u64 i = 0; i < found->count; ++i) {
    if (end - p < kCentralSize || load<u32>(&archive[p]) != kCentralSignature)
      return bad("pt2.zip.directory", "a central directory record is damaged", {}, p);
    const std::byte *r = &archive[p];
    const u64 name_size = load<u16>(r + 28), extra_size = load<u16>(r + 30),
              comment_size = load<u16>(r + 32);
    if (end - p - kCentralSize < name_size + extra_size + comment_size)
      return bad("pt2.zip.directory", "a central directory record is cut short", {}, p);
    ZipEntry e;
    e.name = {reinterpret_cast<const char *>(r + kCentralSize), name_size};
    e.flags = load<u16>(r + 8);
    e.method = load<u16>(r + 10);
    e.crc = load<u32>(r + 16);
    e.compressed = load<u32>(r + 20);
    e.size = load<u32>(r + 24);
    e.header = load<u32>(r + 42);
    if (!apply_zip64({r + kCentralSize + name_size, extra_size}, e))
      return bad("pt2.zip.directory", "a zip64 field is damaged", e.name, p);
    // Lower bound of what the member occupies; its local header is read when it is opened.
    if (e.header > zip.directory_ || zip.directory_ - e.header < kLocalSize + name_size ||
        e.compressed > zip.directory_ - e.header - kLocalSize - name_size)
      return bad("pt2.zip.range", "the member reaches behind the archive's data", e.name, p);
    if (e.method == 0 && e.size != e.compressed)
      return bad("pt2.zip.size", "a stored member's two sizes differ", e.name, p);
    p += kCentralSize + name_size + extra_size + comment_size;
    if (!e.name.empty() && e.name.back() == '/')
      continue;
    zip.entries_.push_back(e);
  }

  zip.by_name_.reserve(zip.entries_.size());
  for (u32 i = 0; i < zip.entries_.size(); ++i)
    if (const ZipEntry &e = zip.entries_[i]; !zip.by_name_.emplace(e.name, i).second)
      return bad("pt2.zip.duplicate", "two members have the same name", e.name, e.header);
  // Writers list members in the order of the file; others cost a sort.
  std::vector<u32> by_offset(zip.entries_.size());
  std::iota(by_offset.begin(), by_offset.end(), 0u);
  const auto before = [&](u32 a, u32 b) { return zip.entries_[a].header < zip.entries_[b].header; };
  if (!std::is_sorted(by_offset.begin(), by_offset.end(), before))
    std::sort(by_offset.begin(), by_offset.end(), before);
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const ZipEntry &a = zip.entries_[by_offset[i - 1]], &b = zip.entries_[by_offset[i]];
    if (b.header - a.header < kLocalSize + a.name.size() + a.compressed)
      return bad("pt2.zip.overlap", "the member overlaps the one before it", b.name, b.header);
  }
  return zip;
}

const ZipEntry *Zip::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

Result<u64> Zip::data_offset(const ZipEntry &e) const {
  // Zip::open checked that the header lies before the central directory.
  const std::byte *h = &archive_[e.header];
  if (load<u32>(h) != kLocalSignature)
    return bad("pt2.zip.header", "the member's local header is damaged", e.name, e.header);
  const u64 name_size = load<u16>(h + 26), extra_size = load<u16>(h + 28);
  const u64 skip = kLocalSize + name_size + extra_size;
  if (name_size != e.name.size() || std::memcmp(h + kLocalSize, e.name.data(), e.name.size()) != 0)
    return bad("pt2.zip.header", "the member's local header has another name", e.name, e.header);
  if (skip > directory_ - e.header || e.compressed > directory_ - e.header - skip)
    return bad("pt2.zip.range", "the member reaches behind the archive's data", e.name, e.header);
  if (e.flags & 1)
    return bad("pt2.zip.encrypted", "the member is encrypted", e.name, e.header,
               "save the archive without encryption");
  return e.header + skip;
}

Result<ZipData> Zip::read(const ZipEntry &e, bool check_crc) const {
  const Result<u64> offset = data_offset(e);
  if (!offset)
    return tl::unexpected(offset.error());
  ZipData out;
  if (e.method == 0) {
    out.bytes = archive_.subspan(*offset, e.size);
    out.owner = owner_;
    out.padding = archive_.size() - *offset - e.size;
  } else if (e.method == 8) {
    constexpr u64 kMaxRatio = 1032; // of deflate, by its longest match per shortest code
    constexpr size_t kPadding = 64;
    if (e.size > max_inflated_ || e.size / kMaxRatio > e.compressed)
      return bad("pt2.zip.bomb", "the member claims to inflate to an absurd size", e.name, e.header,
                 "save the archive with stored (uncompressed) members");
    std::shared_ptr<std::byte[]> buffer(new (std::nothrow) std::byte[e.size + kPadding]);
    if (!buffer)
      return bad("pt2.zip.memory", "not enough memory to inflate the member", e.name, e.header);
    std::memset(buffer.get() + e.size, 0, kPadding);
    if (!inflate_raw(archive_.subspan(*offset, e.compressed), {buffer.get(), e.size}))
      return bad("pt2.zip.deflate", "the member's deflated data is damaged", e.name, *offset);
    out.bytes = {buffer.get(), e.size};
    out.owner = std::move(buffer);
    out.padding = kPadding;
  } else {
    return bad("pt2.zip.method", "the member is packed by an unsupported method", e.name, e.header,
               "save the archive with stored or deflated members");
  }
  if (check_crc && crc32_of(out.bytes) != e.crc)
    return bad("pt2.zip.crc", "the member's checksum does not match its content", e.name, *offset,
               "the file was damaged after it was written; copy or export it again");
  return out;
}

} // namespace chute::pt2

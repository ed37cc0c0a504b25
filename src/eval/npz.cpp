// The .npz format: a zip archive with one .npy member per array.

#include "eval/npz.h"

#include "support/deflate.h"
#include "support/mapped_file.h"
#include "support/output_file.h"

#include <algorithm>
#include <cstring>

namespace chute::eval {

namespace {

constexpr u32 kLocal = 0x04034b50;
constexpr u32 kCentral = 0x02014b50;
constexpr u32 kEnd = 0x06054b50;
constexpr u32 kEnd64 = 0x06064b50;
constexpr u32 kLocator64 = 0x07064b50;
constexpr u32 kMax32 = 0xFFFFFFFF;

/// Little-endian fields at an offset that the caller has checked.
class Fields {
public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}
  u64 size() const { return bytes_.size(); }
  bool holds(u64 at, u64 n) const { return at <= size() && n <= size() - at; }
  u64 get(u64 at, int n) const {
    u64 v = 0;
    for (int i = n; i-- > 0;)
      v = v << 8 | static_cast<u64>(bytes_[at + static_cast<u64>(i)]);
    return v;
  }
  std::string text(u64 at, u64 n) const {
    return {reinterpret_cast<const char *>(bytes_.data()) + at, static_cast<size_t>(n)};
  }
  std::span<const std::byte> sub(u64 at, u64 n) const { return bytes_.subspan(at, n); }

private:
  std::span<const std::byte> bytes_;
};

struct Member {
  std::string name;
  u64 method = 0;
  u64 flags = 0;
  u64 crc = 0;
  u64 packed = 0;
  u64 size = 0;
  u64 local = 0;
};

class ZipReader {
public:
  ZipReader(std::span<const std::byte> bytes, const std::string &where)
      : in_(bytes), where_(where) {}

  Result<std::vector<Member>> directory() {
    // The end record is the last one; a comment of up to 64 KiB may follow it.
    if (in_.size() < 22)
      return bad("npz.zip.end", "not a zip archive");
    u64 end = in_.size() - 22;
    const u64 lowest = end > 0xFFFF ? end - 0xFFFF : 0;
    while (in_.get(end, 4) != kEnd) {
      if (end == lowest)
        return bad("npz.zip.end", "not a zip archive: it has no end record");
      --end;
    }
    u64 count = in_.get(end + 10, 2);
    u64 at = in_.get(end + 16, 4);
    if (end >= 20 && in_.get(end - 20, 4) == kLocator64) {
      const u64 end64 = in_.get(end - 20 + 8, 8);
      if (!in_.holds(end64, 56) || in_.get(end64, 4) != kEnd64)
        return bad("npz.zip.end", "the zip64 end record is missing");
      count = in_.get(end64 + 32, 8);
      at = in_.get(end64 + 48, 8);
    }
    std::vector<Member> members;
    for (u64 i = 0; i < count; ++i) {
      if (!in_.holds(at, 46) || in_.get(at, 4) != kCentral)
        return bad("npz.zip.directory", "the directory is damaged at byte " + std::to_string(at));
      const u64 name = in_.get(at + 28, 2);
      const u64 extra = in_.get(at + 30, 2);
      const u64 comment = in_.get(at + 32, 2);
      if (!in_.holds(at + 46, name + extra + comment))
        return bad("npz.zip.directory", "the directory is cut off");
      Member m;
      m.flags = in_.get(at + 8, 2);
      m.method = in_.get(at + 10, 2);
      m.crc = in_.get(at + 16, 4);
      m.packed = in_.get(at + 20, 4);
      m.size = in_.get(at + 24, 4);
      m.local = in_.get(at + 42, 4);
      m.name = in_.text(at + 46, name);
      wide_fields(at + 46 + name, extra, m);
      members.push_back(std::move(m));
      at += 46 + name + extra + comment;
    }
    return members;
  }

  Result<std::vector<std::byte>> content(const Member &m) {
    if (m.flags & 1)
      return bad("npz.zip.member", m.name + " is encrypted");
    if (!in_.holds(m.local, 30) || in_.get(m.local, 4) != kLocal)
      return bad("npz.zip.member", m.name + " has no local header");
    const u64 data = m.local + 30 + in_.get(m.local + 26, 2) + in_.get(m.local + 28, 2);
    if (!in_.holds(data, m.packed))
      return bad("npz.zip.member", m.name + " is cut off");
    const std::span<const std::byte> packed = in_.sub(data, m.packed);
    std::vector<std::byte> out;
    if (m.method == 0) {
      if (m.size != m.packed)
        return bad("npz.zip.member", m.name + " has two sizes");
      out.assign(packed.begin(), packed.end());
    } else if (m.method == 8) {
      // Deflate can not do better than 1032 to 1: a larger claim is a trap for the allocator.
      if (m.size / 1032 > m.packed + 1)
        return bad("npz.zip.member", m.name + " claims an impossible size");
      out.resize(m.size);
      if (!inflate_raw(packed, out))
        return bad("npz.zip.member", m.name + " does not inflate to its size");
    } else {
      return bad("npz.zip.member", m.name + " uses compression method " + std::to_string(m.method));
    }
    if (crc32_of(out) != m.crc)
      return bad("npz.zip.member", m.name + " has a wrong checksum");
    return out;
  }

private:
  /// The zip64 extra field holds those of size, packed size and offset that did not fit, in order.
  void wide_fields(u64 at, u64 length, Member &m) const {
    const u64 end = at + length;
    while (at + 4 <= end) {
      const u64 id = in_.get(at, 2);
      const u64 stop = at + 4 + in_.get(at + 2, 2);
      at += 4;
      if (id == 1) {
        for (u64 *field : {&m.size, &m.packed, &m.local})
          if (*field == kMax32 && at + 8 <= std::min(stop, end)) {
            *field = in_.get(at, 8);
            at += 8;
          }
        return;
      }
      at = stop;
    }
  }
  tl::unexpected<Diagnostic> bad(const char *code, std::string message) const {
    return fail(ErrorKind::BadInput, code, std::move(message), where_);
  }

  Fields in_;
  const std::string &where_;
};

/// Appends little-endian fields.
struct Writer {
  std::vector<std::byte> bytes;
  void put(u64 v, int n) {
    for (int i = 0; i < n; ++i)
      bytes.push_back(static_cast<std::byte>(v >> (8 * i)));
  }
  void text(std::string_view s) {
    for (char c : s)
      bytes.push_back(static_cast<std::byte>(c));
  }
};

constexpr u64 kDosDate = 1 << 5 | 1; // 1 January 1980

/// The fields that local header and directory share.
void put_common(Writer &w, const Member &m, bool wide) {
  w.put(wide ? 45 : 20, 2);
  w.put(0, 2); // flags
  w.put(0, 2); // stored
  w.put(0, 2); // time
  w.put(kDosDate, 2);
  w.put(m.crc, 4);
  w.put(wide ? kMax32 : m.packed, 4);
  w.put(wide ? kMax32 : m.size, 4);
  w.put(m.name.size(), 2);
}

} // namespace

Result<std::vector<std::pair<std::string, Tensor>>> parse_npz(std::span<const std::byte> bytes,
                                                              const std::string &where) {
  ZipReader zip(bytes, where);
  const auto members = zip.directory();
  if (!members)
    return tl::unexpected(members.error());
  std::vector<std::pair<std::string, Tensor>> out;
  for (const Member &m : *members) {
    const auto content = zip.content(m);
    if (!content)
      return tl::unexpected(content.error());
    auto tensor = parse_npy(*content, where + ":" + m.name);
    if (!tensor)
      return tl::unexpected(tensor.error());
    std::string name = m.name;
    if (name.size() > 4 && name.ends_with(".npy"))
      name.resize(name.size() - 4);
    out.emplace_back(std::move(name), std::move(*tensor));
  }
  return out;
}

Result<std::vector<std::pair<std::string, Tensor>>> read_numpy(const std::string &path) {
  const auto file = MappedFile::open(path);
  if (!file)
    return tl::unexpected(file.error());
  const std::span<const std::byte> bytes = (*file)->bytes();
  if (bytes.size() >= 2 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'})
    return parse_npz(bytes, path);
  auto tensor = parse_npy(bytes, path);
  if (!tensor)
    return tl::unexpected(tensor.error());
  std::vector<std::pair<std::string, Tensor>> out;
  out.emplace_back("", std::move(*tensor));
  return out;
}

Status write_npz(const std::string &path, std::span<const std::pair<std::string, Tensor>> arrays,
                 const NpyWriteOptions &options) {
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  std::vector<Member> members;
  for (const auto &[name, tensor] : arrays) {
    if (!tensor.defined())
      continue;
    const auto content = format_npy(tensor, options);
    if (!content)
      return tl::unexpected(content.error());
    Member m;
    m.name = name + ".npy";
    m.crc = crc32_of(*content);
    m.size = m.packed = content->size();
    m.local = file->position();
    const bool wide = m.size >= kMax32;
    Writer w;
    w.put(kLocal, 4);
    put_common(w, m, wide);
    w.put(wide ? 20 : 0, 2);
    w.text(m.name);
    if (wide) {
      w.put(1, 2);
      w.put(16, 2);
      w.put(m.size, 8);
      w.put(m.packed, 8);
    }
    // An error sticks to the file; commit() returns it.
    static_cast<void>(file->write(w.bytes));
    static_cast<void>(file->write(*content));
    members.push_back(std::move(m));
  }
  const u64 directory = file->position();
  for (const Member &m : members) {
    const bool wide = m.size >= kMax32 || m.local >= kMax32;
    Writer w;
    w.put(kCentral, 4);
    w.put(wide ? 45 : 20, 2); // made by
    put_common(w, m, wide);
    w.put(wide ? 28 : 0, 2);
    w.put(0, 2); // comment
    w.put(0, 2); // disk
    w.put(0, 2); // internal attributes
    w.put(u64{0600} << 16, 4);
    w.put(wide ? kMax32 : m.local, 4);
    w.text(m.name);
    if (wide) {
      w.put(1, 2);
      w.put(24, 2);
      w.put(m.size, 8);
      w.put(m.packed, 8);
      w.put(m.local, 8);
    }
    static_cast<void>(file->write(w.bytes));
  }
  Writer w;
  const u64 length = file->position() - directory;
  if (members.size() >= 0xFFFF || directory >= kMax32 || length >= kMax32) {
    w.put(kEnd64, 4);
    w.put(44, 8);
    w.put(45, 2);
    w.put(45, 2);
    w.put(0, 4);
    w.put(0, 4);
    w.put(members.size(), 8);
    w.put(members.size(), 8);
    w.put(length, 8);
    w.put(directory, 8);
    w.put(kLocator64, 4);
    w.put(0, 4);
    w.put(directory + length, 8);
    w.put(1, 4);
  }
  w.put(kEnd, 4);
  w.put(0, 4);
  w.put(std::min<u64>(members.size(), 0xFFFF), 2);
  w.put(std::min<u64>(members.size(), 0xFFFF), 2);
  w.put(std::min<u64>(length, kMax32), 4);
  w.put(std::min<u64>(directory, kMax32), 4);
  w.put(0, 2);
  static_cast<void>(file->write(w.bytes));
  return file->commit();
}

} // namespace chute::eval

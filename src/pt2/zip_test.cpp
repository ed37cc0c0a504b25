#include "pt2/zip.h"

#include <cstring>
#include <gtest/gtest.h>
#include <zlib.h>

namespace chute::pt2 {
namespace {

void put(std::string &out, u64 value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8)
    out += static_cast<char>(value);
}

/// One member as a test wants it; fields left alone are right.
struct Made {
  std::string name = {};
  std::string content = {};
  bool deflate = false;
  u16 flags = 0;
  int method = -1;
  i64 size = -1, compressed = -1, offset = -1; ///< lies in the directory
  std::string local_name = {};                 ///< a different name in the local header
  u32 crc_error = 0;
  bool zip64 = false;
  std::string local_extra = {};
};

std::string deflated(const std::string &text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef *>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string archive(const std::vector<Made> &members, bool zip64_end = false) {
  std::string out, directory;
  for (const Made &m : members) {
    const u64 at = m.offset >= 0 ? static_cast<u64>(m.offset) : out.size();
    const std::string packed = m.deflate ? deflated(m.content) : m.content;
    const u64 size = m.size >= 0 ? static_cast<u64>(m.size) : m.content.size();
    const u64 compressed = m.compressed >= 0 ? static_cast<u64>(m.compressed) : packed.size();
    const u64 crc =
        ::crc32_z(0, reinterpret_cast<const Bytef *>(m.content.data()), m.content.size()) ^
        m.crc_error;
    const u64 method = m.method >= 0 ? static_cast<u64>(m.method) : m.deflate ? 8 : 0;
    const std::string &local = m.local_name.empty() ? m.name : m.local_name;
    out += "PK\3\4";
    put(out, 20, 2);
    put(out, m.flags, 2);
    put(out, method, 2);
    put(out, 0, 4 + 4 + 4 + 4); // time, and a data descriptor's zero CRC and sizes
    put(out, local.size(), 2);
    put(out, m.local_extra.size(), 2);
    out += local + m.local_extra + packed;
    std::string extra;
    if (m.zip64) {
      put(extra, 0x4246, 2); // another field comes first
      put(extra, 2, 2);
      put(extra, 0, 2);
      put(extra, 1, 2);
      put(extra, 24, 2);
      put(extra, size, 8);
      put(extra, compressed, 8);
      put(extra, at, 8);
    }
    directory += "PK\1\2";
    put(directory, 20, 2);
    put(directory, 20, 2);
    put(directory, m.flags, 2);
    put(directory, method, 2);
    put(directory, 0, 4);
    put(directory, crc, 4);
    put(directory, m.zip64 ? 0xFFFFFFFF : compressed, 4);
    put(directory, m.zip64 ? 0xFFFFFFFF : size, 4);
    put(directory, m.name.size(), 2);
    put(directory, extra.size(), 2);
    put(directory, 0, 2 + 2 + 2 + 4);
    put(directory, m.zip64 ? 0xFFFFFFFF : at, 4);
    directory += m.name + extra;
  }
  const u64 at = out.size();
  out += directory;
  if (zip64_end) {
    const u64 end64 = out.size();
    out += "PK\6\6";
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);
    put(out, members.size(), 8);
    put(out, members.size(), 8);
    put(out, directory.size(), 8);
    put(out, at, 8);
    out += "PK\6\7";
    put(out, 0, 4);
    put(out, end64, 8);
    put(out, 1, 4);
  }
  out += "PK\5\6";
  put(out, 0, 4);
  put(out, zip64_end ? 0xFFFF : members.size(), 2);
  put(out, zip64_end ? 0xFFFF : members.size(), 2);
  put(out, zip64_end ? 0xFFFFFFFF : directory.size(), 4);
  put(out, zip64_end ? 0xFFFFFFFF : at, 4);
  put(out, 0, 2);
  return out;
}

Result<Zip> open(const std::string &bytes, u64 max_inflated = 1 << 20) {
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return Zip::open({copy.get(), bytes.size()}, copy, max_inflated);
}

/// The member's content, or the code of what went wrong.
std::string content(const std::string &bytes, const std::string &name, bool crc = true) {
  const auto zip = open(bytes);
  if (!zip)
    return zip.error().code;
  const ZipEntry *e = zip->find(name);
  if (!e)
    return "(none)";
  const auto data = zip->read(*e, crc);
  if (!data) {
    EXPECT_NE(data.error().object.find('@'), std::string::npos);
    return data.error().code;
  }
  return std::string(data->text());
}

TEST(Zip, StoredAndDeflated) {
  const std::string many(5000, 'x');
  const std::string bytes =
      archive({{.name = "a/one", .content = "first", .local_extra = "padding"},
               {.name = "a/two", .content = many, .deflate = true},
               {.name = "a/", .content = ""},
               {.name = "a/empty", .content = ""}});
  EXPECT_EQ(content(bytes, "a/one"), "first");
  EXPECT_EQ(content(bytes, "a/two"), many);
  EXPECT_EQ(content(bytes, "a/empty"), "");
  EXPECT_EQ(content(bytes, "a/three"), "(none)");
  const auto zip = open(bytes);
  ASSERT_TRUE(zip.has_value());
  EXPECT_EQ(zip->entries().size(), 3u); // the folder is left out
  EXPECT_EQ(zip->entries()[0].name, "a/one");
}

TEST(Zip, StoredContentIsAView) {
  const std::string bytes = archive({{.name = "n", .content = "content"}});
  const auto zip = Zip::open(std::as_bytes(std::span(bytes)), nullptr);
  ASSERT_TRUE(zip.has_value());
  const auto data = zip->read(*zip->find("n"), true);
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(data->text().data(), bytes.data() + bytes.find("content"));
  EXPECT_EQ(data->padding, bytes.size() - bytes.find("content") - 7);
}

TEST(Zip, Zip64) {
  EXPECT_EQ(content(archive({{.name = "n", .content = "x", .zip64 = true}}, true), "n"), "x");
  EXPECT_EQ(content(archive({{.name = "n", .content = "x"}}, true), "n"), "x");
  EXPECT_EQ(content(archive({{.name = "n", .content = "x", .zip64 = true}}), "n"), "x");
}

TEST(Zip, Comment) {
  std::string bytes = archive({{.name = "n", .content = "x"}});
  bytes[bytes.size() - 2] = 5;
  EXPECT_EQ(content(bytes + "hello", "n"), "x");
}

TEST(Zip, RefusesWhatIsDamaged) {
  const Made a{.name = "a", .content = "aaaa"}, b{.name = "b", .content = "bbbb"};
  const auto with = [](Made m, auto change) {
    change(m);
    return m;
  };
  const std::string good = archive({a, b});
  EXPECT_EQ(content("", "a"), "pt2.zip.truncated");
  EXPECT_EQ(content(std::string(100, 'P'), "a"), "pt2.zip.truncated");
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_TRUE(content(good.substr(0, n), "a").starts_with("pt2.zip.")) << n;
  EXPECT_EQ(content(archive({a, a}), "a"), "pt2.zip.duplicate");
  EXPECT_EQ(content(archive({a, with(b, [](Made &m) { m.offset = 1; })}), "a"), "pt2.zip.overlap");
  EXPECT_EQ(content(archive({a, with(b, [](Made &m) { m.offset = 0; })}), "a"), "pt2.zip.overlap");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.offset = 1 << 30; })}), "a"), "pt2.zip.range");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.size = m.compressed = 1000; })}), "a"),
            "pt2.zip.range");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.size = 3; })}), "a"), "pt2.zip.size");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.crc_error = 1; })}), "a"), "pt2.zip.crc");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.crc_error = 1; })}), "a", false), "aaaa");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.method = 12; })}), "a"), "pt2.zip.method");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.flags = 1; })}), "a"), "pt2.zip.encrypted");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.local_name = "z"; })}), "a"),
            "pt2.zip.header");
  EXPECT_EQ(content(archive({with(a, [](Made &m) { m.method = 8; })}), "a"), "pt2.zip.deflate");
  // Claims of a size: too large for deflate, too large for the caller, larger or smaller than the
  // truth.
  const Made d{.name = "d", .content = std::string(1000, 'd'), .deflate = true};
  EXPECT_EQ(content(archive({with(d, [](Made &m) { m.size = 1 << 19; })}), "d"), "pt2.zip.bomb");
  EXPECT_EQ(content(archive({with(d, [](Made &m) { m.size = 1 << 21; })}), "d"), "pt2.zip.bomb");
  EXPECT_EQ(content(archive({with(d, [](Made &m) { m.size = 1001; })}), "d"), "pt2.zip.deflate");
  EXPECT_EQ(content(archive({with(d, [](Made &m) { m.size = 999; })}), "d"), "pt2.zip.deflate");
}

TEST(Zip, ErrorsNameTheMemberAndItsPlace) {
  const auto zip = open(archive(
      {{.name = "first", .content = "1"}, {.name = "x\ny", .content = "1", .crc_error = 5}}));
  ASSERT_TRUE(zip.has_value());
  const auto data = zip->read(*zip->find("x\ny"), true);
  ASSERT_FALSE(data.has_value());
  EXPECT_EQ(data.error().object, "x?y@" + std::to_string(30 + 5 + 1 + 30 + 3));
  EXPECT_EQ(data.error().kind, ErrorKind::BadInput);
}

} // namespace
} // namespace chute::pt2

#include "ethosu/arrays.h"

#include <algorithm>
#include <cstring>

namespace chute::ethosu {

namespace {

tl::unexpected<Diagnostic> unexpected_result(std::string what, std::string_view object) {
  return fail(ErrorKind::Failure, "ethosu.vela.result", std::move(what), std::string(object),
              "this version of Vela writes another format; chute was tried with 5.1 and 5.2");
}

constexpr std::string_view kMagic = "\x93NUMPY";

} // namespace

Result<Arrays> Arrays::open(std::span<const std::byte> npz, std::shared_ptr<const void> owner) {
  Result<pt2::Zip> zip = pt2::Zip::open(npz, std::move(owner));
  if (!zip)
    return unexpected_result("Vela's output is no archive of arrays", {});
  return Arrays(std::move(*zip));
}

Result<Arrays::Member> Arrays::member(std::string_view name) const {
  const pt2::ZipEntry *entry = zip_.find(std::string(name) + ".npy");
  if (!entry)
    return unexpected_result("an array is missing in Vela's output", name);
  Result<pt2::ZipData> data = zip_.read(*entry, true);
  if (!data)
    return tl::unexpected(data.error());
  const std::string_view text = data->text();
  if (text.size() < 12 || !text.starts_with(kMagic))
    return unexpected_result("an array of Vela's output is malformed", name);
  // Version 1 has a 16-bit header length, later ones 32 bits.
  const bool wide = text[6] != 1;
  u32 length = 0;
  std::memcpy(&length, text.data() + 8, wide ? 4 : 2);
  const size_t begin = wide ? 12 : 10;
  if (text.size() - begin < length)
    return unexpected_result("an array of Vela's output is cut short", name);
  const std::string_view header = text.substr(begin, length);
  constexpr std::string_view kKey = "'descr': '";
  const size_t at = header.find(kKey);
  if (at == header.npos)
    return unexpected_result("an array of Vela's output has no element type", name);
  const size_t from = at + kKey.size(), to = header.find('\'', from);
  Member m;
  m.dtype = std::string(header.substr(from, to - from));
  m.content = data->bytes.subspan(begin + length);
  m.data = std::move(*data);
  return m;
}

Result<std::string> Arrays::bytes(std::string_view name) const {
  const Result<Member> m = member(name);
  if (!m)
    return tl::unexpected(m.error());
  if (!m->dtype.starts_with("|S") && m->dtype != "|u1")
    return unexpected_result("an array holds no bytes but " + m->dtype, name);
  return std::string(reinterpret_cast<const char *>(m->content.data()), m->content.size());
}

Result<std::vector<i64>> Arrays::integers(std::string_view name) const {
  const Result<Member> m = member(name);
  if (!m)
    return tl::unexpected(m.error());
  std::vector<i64> out;
  const auto read = [&]<class T>(T) {
    for (size_t i = 0; i + sizeof(T) <= m->content.size(); i += sizeof(T)) {
      T v{};
      std::memcpy(&v, m->content.data() + i, sizeof v);
      out.push_back(static_cast<i64>(v));
    }
  };
  if (m->dtype == "<i8" || m->dtype == "<u8")
    read(i64{});
  else if (m->dtype == "<i4")
    read(i32{});
  else if (!m->content.empty())
    return unexpected_result("an array holds no integers but " + m->dtype, name);
  return out;
}

namespace {

class Stream {
public:
  void block(std::string_view name, std::string_view payload) {
    constexpr size_t kNameBytes = 16, kFlagBytes = 12, kAlignment = 16;
    std::string head(name);
    head.resize(kNameBytes);
    put(head);
    const auto length = static_cast<u32>(payload.size());
    put({reinterpret_cast<const char *>(&length), sizeof length});
    put(std::string(kFlagBytes, '\0'));
    put(payload);
    bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

private:
  void put(std::string_view text) {
    const auto *from = reinterpret_cast<const std::byte *>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
  }
  std::vector<std::byte> bytes_;
};

/// A count, then for each tensor its shape of six, element size, offset and region, as i32.
Result<std::string> tensors(const Arrays &arrays, const std::string &side) {
  constexpr size_t kDims = 6;
  const auto shapes = arrays.integers(side + "_shape"),
             sizes = arrays.integers(side + "_elem_size"),
             offsets = arrays.integers(side + "_offset"),
             regions = arrays.integers(side + "_region");
  for (const auto *a : {&shapes, &sizes, &offsets, &regions})
    if (!*a)
      return tl::unexpected(a->error());
  const size_t n = sizes->size();
  if (shapes->size() != n * kDims || offsets->size() != n || regions->size() != n)
    return unexpected_result("the descriptions of tensors do not fit each other", side);
  std::string out;
  const auto put = [&](i64 v) {
    const auto narrow = static_cast<i32>(v);
    out.append(reinterpret_cast<const char *>(&narrow), sizeof narrow);
  };
  put(static_cast<i64>(n));
  for (size_t i = 0; i < n; ++i) {
    for (size_t d = 0; d < kDims; ++d)
      put((*shapes)[i * kDims + d]);
    put((*sizes)[i]);
    put((*offsets)[i]);
    put((*regions)[i]);
  }
  return out;
}

} // namespace

Result<std::vector<std::byte>> stream_of(const Arrays &arrays) {
  const auto commands = arrays.bytes("cmd_data"), weights = arrays.bytes("weight_data");
  const auto scratch = arrays.integers("scratch_size");
  const auto inputs = tensors(arrays, "input"), outputs = tensors(arrays, "output");
  for (const auto *text : {&commands, &weights, &inputs, &outputs})
    if (!*text)
      return tl::unexpected(text->error());
  if (!scratch)
    return tl::unexpected(scratch.error());
  if (scratch->size() != 1)
    return unexpected_result("the scratch memory has no size", "scratch_size");
  const auto bytes = static_cast<u32>((*scratch)[0]);
  Stream s;
  s.block("vela_bin_stream", {});
  s.block("cmd_data", *commands);
  s.block("weight_data", *weights);
  s.block("scratch_size", {reinterpret_cast<const char *>(&bytes), sizeof bytes});
  s.block("inputs", *inputs);
  s.block("outputs", *outputs);
  s.block("vela_end_stream", {});
  return s.take();
}

} // namespace chute::ethosu

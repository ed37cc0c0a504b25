// Any bytes as an archive: an error or a graph that prints, never a crash. The first byte chooses
// options; archives of the seed corpus start behind it.

#include "aten/ops.h"
#include "ir/verifier.h"
#include "pt2/reader.h"
#include "support/check.h"

#include <cstring>
#include <string>

namespace {

void put(std::string &out, chute::u64 value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8)
    out += static_cast<char>(value);
}

/// An archive of the oldest layout with this program and nothing else. Checksums are left zero.
std::string wrap(std::string_view program) {
  const std::string name = "serialized_exported_program.json";
  std::string common;
  put(common, 0, 12); // flags, method, time, date, CRC
  put(common, program.size(), 4);
  put(common, program.size(), 4);
  put(common, name.size(), 2);
  put(common, 0, 2);
  std::string out = "PK\3\4";
  put(out, 20, 2);
  out += common + name;
  out += program;
  const chute::u64 directory = out.size();
  out += "PK\1\2";
  put(out, 20, 2);
  put(out, 20, 2);
  out += common;
  put(out, 0, 14); // comment, volume, attributes, offset
  out += name;
  const chute::u64 end = out.size();
  out += "PK\5\6";
  put(out, 0, 4);
  put(out, 1, 2);
  put(out, 1, 2);
  put(out, end - directory, 4);
  put(out, directory, 4);
  put(out, 0, 2);
  return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace chute;
  static const bool registered = [] {
    aten::register_dialect();
    return true;
  }();
  static_cast<void>(registered);
  if (size == 0)
    return 0;
  pt2::ReadOptions options;
  options.threads = data[0] & 1 ? 2 : 1;
  options.piece_bytes = data[0] & 2 ? 64 : 1 << 20;
  options.check_weights = data[0] & 4;
  options.max_inflated = 1 << 22;
  options.check_json = false;
  std::string archive(reinterpret_cast<const char *>(data + 1), size - 1);
  if (data[0] & 8)
    archive = wrap(archive);
  // A heap copy of the exact size, so that reading one byte too far is seen.
  const std::shared_ptr<std::byte[]> copy(new std::byte[archive.size()]);
  std::memcpy(copy.get(), archive.data(), archive.size());
  ir::Context ctx;
  Diagnostics diagnostics;
  const auto graph =
      pt2::read_bytes(ctx, {copy.get(), archive.size()}, copy, "fuzz", diagnostics, options);
  if (!graph) {
    CHUTE_CHECK(!graph.error().code.empty() && !graph.error().object.empty(),
                "error without place");
    return 0;
  }
  ir::verify(**graph, diagnostics);
  for (const Diagnostic &d : diagnostics.all())
    CHUTE_CHECK(d.severity != Severity::Error, to_text(d).c_str());
  return 0;
}

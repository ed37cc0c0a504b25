// Any bytes as an archive: an error or a graph that prints, never a crash. The first byte chooses
// options; archives of the seed corpus start behind it.

#include "aten/ops.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "pt2/reader.h"
#include "support/check.h"

#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
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
  // A heap copy of the exact size, so that reading one byte too far is seen.
  const std::shared_ptr<std::byte[]> copy(new std::byte[size - 1]);
  if (size > 1)
    std::memcpy(copy.get(), data + 1, size - 1);
  ir::Context ctx;
  Diagnostics diagnostics;
  const auto graph =
      pt2::read_bytes(ctx, {copy.get(), size - 1}, copy, "fuzz", diagnostics, options);
  if (!graph) {
    CHUTE_CHECK(!graph.error().code.empty() && !graph.error().object.empty(),
                "error without place");
    return 0;
  }
  ir::PrintOptions print;
  print.elide_bytes = 0; // content is not what is tested
  ir::verify(**graph, diagnostics);
  for (const Diagnostic& d : diagnostics.all())
    CHUTE_CHECK(d.severity != Severity::Error, to_text(d).c_str());
  return 0;
}

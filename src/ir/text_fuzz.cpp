// Any bytes: the parser refuses them or gives a graph that prints, and whose print reads back to
// the same print. Verification runs over whatever was read.

#include "aten/ops.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/check.h"

extern "C" int LLVMFuzzerTestOneInput(const chute::u8 *data, size_t size) {
  using namespace chute;
  aten::register_dialect();
  const ir::ParseOptions options{.file = "fuzz", .max_generated_bytes = 1 << 16};
  ir::Context ctx;
  const auto graph = ir::parse(ctx, {reinterpret_cast<const char *>(data), size}, options);
  if (!graph)
    return 0;
  Diagnostics findings;
  ir::verify(**graph, findings, {.check_inference = true});
  const std::string once = ir::print(**graph);
  ir::Context other;
  const auto again = ir::parse(other, once, options);
  CHUTE_CHECK(again.has_value(), (to_text(again.error()) + "\n" + once).c_str());
  const std::string twice = ir::print(**again);
  CHUTE_CHECK(once == twice, (once + "\n" + twice).c_str());
  Diagnostics same;
  ir::verify(**again, same, {.check_inference = true});
  CHUTE_CHECK(same.error_count() == findings.error_count(), once.c_str());
  return 0;
}

// Any bytes: the verifier reports, the reader refuses or gives a graph that passes the IR's checks
// and that the writer writes as the reader reads it.
#include "ir/context.h"
#include "ir/verifier.h"
#include "support/check.h"
#include "tosa/mlir.h"
#include "tosa/ops.h"
#include "tosa/reader.h"
#include "tosa/verify.h"
#include "tosa/writer.h"

using namespace chute;

extern "C" int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
  tosa::register_dialect();
  const auto bytes = std::as_bytes(std::span(data, size));
  {
    ir::Context ctx;
    Diagnostics findings;
    tosa::verify(ctx, bytes, *tosa::parse_target("tosa-1.1"), findings);
  }
  ir::Context ctx;
  auto model = tosa::read_model(ctx, bytes, nullptr);
  if (!model)
    return 0;
  Diagnostics invalid;
  ir::verify(*model->graph, invalid);
  if (invalid.has_errors())
    return 0;
  static_cast<void>(tosa::print_mlir(*model->graph, [](std::string_view) { return Status(); }));
  const tosa::WriteOptions plain{.minor = {}, .locations = false};
  const auto written = tosa::write_bytes(*model->graph, plain);
  if (!written)
    return 0;
  ir::Context other;
  auto again = tosa::read_model(other, *written, nullptr);
  CHUTE_CHECK(again.has_value(), to_text(again.error()).c_str());
  return 0;
}

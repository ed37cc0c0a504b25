// Any bytes that the Circle verifier finds no error in: `chute optimize` takes the file at every
// level, and what it gives is written, verified without error, and keeps the interface.
#include "circle/ops.h"
#include "circle/optimize.h"
#include "circle/passes.h"
#include "circle/reader.h"
#include "circle/verify.h"
#include "circle/writer.h"
#include "eval/passes.h"
#include "ir/context.h"
#include "ir/verifier.h"
#include "pass/pass.h"
#include "support/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace chute;
  circle::register_dialect();
  pass::register_core_passes();
  circle::register_circle_passes();
  eval::register_passes();
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte *>(data), size);
  Diagnostics found;
  circle::verify(bytes, found);
  if (found.has_errors())
    return 0;
  for (int level = 1; level <= 2; ++level) {
    ir::Context ctx;
    auto model = circle::read_model(ctx, bytes, {});
    if (!model)
      return 0;
    const auto as_read = circle::write_model_bytes(*model);
    if (!as_read)
      return 0; // what can not be written back was no program of ours to change
    std::vector<ir::Type> before;
    for (const ir::Value *arg : model->graph->body().args())
      before.push_back(arg->type());
    const u32 outputs = model->graph->return_op()->num_operands();
    Diagnostics diagnostics;
    std::vector<pass::PassRecord> records;
    const bool ok = pass::run_pipeline(*model->graph, circle::optimize_pipeline(level), diagnostics,
                                       {}, records);
    CHUTE_CHECK(ok, diagnostics.all().empty() ? "failed without a word"
                                              : to_text(diagnostics.all().front()).c_str());
    ir::verify(*model->graph, diagnostics);
    CHUTE_CHECK(!diagnostics.has_errors(), to_text(diagnostics.all().front()).c_str());
    for (u32 i = 0; i < before.size(); ++i)
      CHUTE_CHECK(model->graph->body().arg(i)->type() == before[i], "an input changed");
    CHUTE_CHECK(model->graph->return_op()->num_operands() == outputs, "an output was lost");
    const auto written = circle::write_model_bytes(*model);
    CHUTE_CHECK(written.has_value(), to_text(written.error()).c_str());
    Diagnostics after;
    circle::verify(*written, after);
    for (const Diagnostic &d : after.all())
      CHUTE_CHECK(d.severity != Severity::Error, to_text(d).c_str());
  }
  return 0;
}

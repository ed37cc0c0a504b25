// Any bytes: the verifier answers, what the reader takes is listed and written back, the reader
// gives a graph exactly when nothing fatal was found, and what was read can be written and read
// again.
#include "circle/listing.h"
#include "circle/ops.h"
#include "circle/reader.h"
#include "circle/verify.h"
#include "circle/writer.h"
#include "ir/context.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/check.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace chute;
  circle::register_dialect();
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte *>(data), size);
  Diagnostics everything;
  circle::verify(bytes, everything);
  // Contracts are checked in every subgraph, read are those that the main one reaches: only
  // findings about the structure must keep the reader away.
  Diagnostics found;
  circle::VerifyOptions structure;
  structure.contracts = false;
  circle::verify(bytes, found, structure);
  const bool fatal = std::any_of(found.all().begin(), found.all().end(), [](const Diagnostic &d) {
    return d.severity == Severity::Error && d.kind == ErrorKind::BadInput;
  });
  ir::Context whole;
  if (auto model = circle::read_model(whole, bytes, {}))
    for (const bool compact : {false, true}) {
      circle::ModelWriteOptions options;
      options.compact = compact;
      const auto written = circle::write_model_bytes(*model, options);
      if (!written)
        continue;
      ir::Context other;
      const auto again = circle::read_model(other, *written, {});
      CHUTE_CHECK(again.has_value(), to_text(again.error()).c_str());
      const auto twice = circle::write_model_bytes(*again, options);
      CHUTE_CHECK(twice.has_value() && *twice == *written, "writing back what was written back");
    }
  circle::ListingOptions listing;
  listing.tensors = listing.operators = listing.signatures = listing.quantization =
      listing.metadata = true;
  listing.last = 100;
  listing.json = size % 2 != 0;
  size_t listed = 0;
  const bool lists = circle::list_file(bytes, listing, [&](std::string_view part) {
                       listed += part.size();
                     }).has_value();
  CHUTE_CHECK(lists == !fatal && lists == (listed != 0), "inspect takes what the reader takes");
  ir::Context ctx;
  auto graph = circle::read(ctx, bytes, {});
  CHUTE_CHECK(!(graph && fatal), "the reader takes a file that the verifier calls fatally wrong");
  if (!graph)
    return 0;
  Diagnostics invalid;
  ir::verify(**graph, invalid);
  CHUTE_CHECK(!invalid.has_errors(), to_text(invalid.all().front()).c_str());
  const auto written = circle::write_bytes(**graph);
  if (!written)
    return 0;
  ir::Context other;
  const auto again = circle::read(other, *written, {});
  CHUTE_CHECK(again.has_value(), to_text(again.error()).c_str());
  const auto twice = circle::write_bytes(**again);
  CHUTE_CHECK(twice.has_value() && *twice == *written, "writing what was written changes it");
  return 0;
}

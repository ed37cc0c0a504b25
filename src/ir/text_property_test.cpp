#include "aten/ops.h"
#include "ir/sym_table.h"
#include "ir/testing/random_graph.h"
#include "ir/text.h"
#include "ir/verifier.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace chute::ir {
namespace {

std::string findings(const Graph &g, bool check_inference = false) {
  Diagnostics d;
  verify(g, d, {.check_inference = check_inference});
  std::string out;
  for (const Diagnostic &one : d.all())
    out += to_text(one) + "\n";
  return out;
}

/// The first lines that differ; empty when none does.
std::string difference(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const std::string_view left = a.substr(0, a.find('\n')), right = b.substr(0, b.find('\n'));
    if (left != right)
      return std::string(left) + "\n" + std::string(right);
    a.remove_prefix(std::min(a.size(), left.size() + 1));
    b.remove_prefix(std::min(b.size(), right.size() + 1));
  }
  return {};
}

/// Reads `text` in a context of its own and prints it.
std::string reprint(const std::string &text) {
  Context ctx;
  const auto g = parse(ctx, text);
  if (!g)
    return to_text(g.error()) + "\n" + text;
  return findings(**g) + print(**g);
}

RC_GTEST_PROP(TextProperty, AnyGraphRoundTrips, (u64 seed)) {
  aten::register_dialect();
  Context ctx;
  const auto g = testing::RandomGraph(ctx, seed, {.num_ops = 60}).make();
  RC_ASSERT(findings(*g) == "");
  const std::string text = print(*g);
  RC_ASSERT(difference(reprint(text), text) == "");
  // In the context that knows all its symbols and strings, too.
  const auto again = parse(ctx, text);
  RC_ASSERT(again.has_value());
  RC_ASSERT(difference(print(**again), text) == "");
  // Reading keeps what printing hides.
  const PrintOptions full{.default_attrs = true, .dense_elements = 0};
  RC_ASSERT(difference(print(**again, full), print(*g, full)) == "");
  RC_ASSERT(difference(reprint(print(*g, full)), text) == "");
}

RC_GTEST_PROP(TextProperty, InferredTypesMayBeLeftOut, (u64 seed)) {
  aten::register_dialect();
  Context ctx;
  const auto g = testing::RandomGraph(ctx, seed,
                                      {.num_ops = 20,
                                       .inferred = true,
                                       .regions = false,
                                       .symbolic = false,
                                       .odd_names = false})
                     .make();
  RC_ASSERT(findings(*g, true) == "");
  std::string text = print(*g, {.locations = false});
  const auto same = parse(ctx, text);
  RC_ASSERT(same.has_value());
  // Drop the types of operators: "… : f32[2]\n" with no constant in the line.
  std::string without;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    if (line.starts_with("  %") && line.find(" = aten.") != std::string::npos)
      if (const size_t colon = line.rfind(" : "); colon != std::string::npos)
        line.resize(colon);
    without += line + "\n";
    at = end + 1;
  }
  const auto inferred = parse(ctx, without);
  RC_ASSERT(inferred.has_value());
  RC_ASSERT(difference(print(**inferred, {.locations = false}), text) == "");
}

/// Text that was valid before some of its bytes changed: an error or a graph that prints, no crash.
RC_GTEST_PROP(TextProperty, DamagedTextIsRefusedOrRead, (u64 seed)) {
  aten::register_dialect();
  Context ctx;
  std::string text = print(*testing::RandomGraph(ctx, seed, {.num_ops = 15}).make());
  std::mt19937_64 random(seed);
  for (int i = 0; i < 50; ++i) {
    std::string damaged = text;
    switch (random() % 3) {
    case 0: damaged.resize(random() % damaged.size()); break;
    case 1: damaged[random() % damaged.size()] = static_cast<char>(random()); break;
    default: damaged.erase(random() % damaged.size(), 1 + random() % 8); break;
    }
    Context fresh;
    const auto g = parse(fresh, damaged, {.file = {}, .max_generated_bytes = 1 << 20});
    if (g) {
      const std::string once = print(**g);
      RC_ASSERT(print(**parse(fresh, once)) == once);
    } else {
      RC_ASSERT(!g.error().object.empty());
    }
  }
}

} // namespace
} // namespace chute::ir

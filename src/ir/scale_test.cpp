// A chain of a million operators is a normal input (DESIGN rule 7). Everything runs on a thread
// with a small stack, where recursion over depth would not survive.

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "ir/verifier.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <functional>

namespace chute::ir {
namespace {

constexpr size_t kOps = 1'000'000;

void run_with_small_stack(const std::function<void()> &work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  pthread_t thread;
  const int started = pthread_create(
      &thread, &attributes,
      [](void *f) -> void * {
        (*static_cast<const std::function<void()> *>(f))();
        return nullptr;
      },
      const_cast<std::function<void()> *>(&work));
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(started, 0);
  pthread_join(thread, nullptr);
}

class Clock {
public:
  /// Seconds since the last call.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double s = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return s;
  }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::unique_ptr<Graph> chain(Context &ctx, size_t n) {
  auto g = std::make_unique<Graph>(ctx);
  const Type type = ctx.tensor_type(ElementType::F32, {1, 64});
  Value *v = g->add_argument(g->body(), type, ctx.intern("x"));
  g->inputs().push_back({"x", InputKind::User, v, {}});
  Builder b(*g, g->body());
  const std::array<NamedAttr, 1> dims{NamedAttr{"dims", ctx.ints_attr({1, 0})}};
  for (size_t i = 0; i < n; ++i) {
    const std::array<Value *, 1> operands{v};
    if (i % 2)
      v = b.create_typed(aten::op::permute, operands, dims, std::array{type})->result();
    else
      v = b.create_typed(aten::op::relu, operands, {}, std::array{type})->result();
  }
  b.ret(std::array{v});
  g->outputs().push_back({"y", OutputKind::User, 0, {}, {}});
  return g;
}

TEST(Scale, ChainOfAMillionOperators) {
  aten::register_dialect();
  run_with_small_stack([] {
    Clock clock;
    Context ctx;
    auto g = chain(ctx, kOps);
    const double build = clock.lap();
    const double bytes_per_op = static_cast<double>(g->ir_bytes()) / kOps;
    const std::string text = print(*g);
    const double printed = clock.lap();
    auto again = parse(ctx, text);
    const double parsed = clock.lap();
    ASSERT_TRUE(again.has_value()) << to_text(again.error());
    Diagnostics findings;
    verify(**again, findings);
    const double verified = clock.lap();
    EXPECT_FALSE(findings.has_errors());
    EXPECT_EQ((*again)->num_ops(), kOps + 1);
    EXPECT_EQ((*again)->num_op_ids(), kOps + 1);
    again->reset();
    g.reset();
    const double destroyed = clock.lap();
    EXPECT_LE(bytes_per_op, 256);
    ::testing::Test::RecordProperty("ir_bytes_per_op", std::to_string(bytes_per_op));
    std::printf(
        "build %.2f s, print %.2f s (%.0f MB), parse %.2f s, verify %.2f s, destroy %.3f s, "
        "%.0f bytes/op\n",
        build, printed, static_cast<double>(text.size()) / 1e6, parsed, verified, destroyed,
        bytes_per_op);
    // Loose, for machines that are busy or sanitized: quadratic work would take hours.
    EXPECT_LT(build + printed + parsed + verified + destroyed, 120);
  });
}

TEST(Scale, PrintStreams) {
  aten::register_dialect();
  Context ctx;
  const auto g = chain(ctx, 20'000);
  size_t largest = 0, total = 0;
  print(*g, [&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    total += piece.size();
  });
  EXPECT_EQ(total, print(*g).size());
  EXPECT_LT(largest, size_t{1} << 17);
}

TEST(Scale, DeepNestingOfRegionsAndLists) {
  aten::register_dialect();
  run_with_small_stack([] {
    constexpr size_t kDepth = 20'000;
    std::string open, close;
    for (size_t i = 0; i < kDepth; ++i) {
      open += "core.unregistered() {target = \"t\", arg_names = [], args = []} do () {\n";
      close += "return } : ()\n";
    }
    std::string lists(kDepth, '[');
    lists.append(kDepth, ']');
    const std::string text =
        "graph @m() -> () {\n" + open +
        "core.unregistered() {target = \"t\", arg_names = [], args = " + lists + "} : ()\n" +
        close + "return }";
    Context ctx;
    auto g = parse(ctx, text);
    ASSERT_TRUE(g.has_value()) << to_text(g.error());
    Diagnostics findings;
    verify(**g, findings);
    EXPECT_FALSE(findings.has_errors());
    const std::string once = print(**g);
    Context other;
    auto again = parse(other, once);
    ASSERT_TRUE(again.has_value()) << to_text(again.error());
    EXPECT_EQ(print(**again), once);
    Graph &graph = **g;
    graph.erase(graph.body().front());
    EXPECT_EQ(graph.num_ops(), 1u);
  });
}

} // namespace
} // namespace chute::ir

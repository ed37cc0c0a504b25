// Random Circle programs compute the same before and after the passes that look at more than an
// operator and its neighbours, every one of which is hit at least 20 times (the test prints how
// often), and before and after custom operators are resolved.

#include "circle/ops.h"
#include "circle/optimize.h"
#include "circle/passes.h"
#include "circle/testing/random_circle.h"
#include "circle/testing/random_regions.h"
#include "eval/passes.h"
#include "eval/testing/check_programs.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "pass/pass.h"

#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>
#include <map>

namespace chute::eval {
namespace {

void register_all() {
  circle::register_dialect();
  circle::register_circle_passes();
  pass::register_core_passes();
  register_passes();
}

u64 count(const ir::Graph &graph, ir::OpCode code) {
  u64 n = 0;
  ir::walk(graph, [&](const ir::Op &op) { n += op.opcode() == code; });
  return n;
}

class CircleRegions : public ::testing::Test {
protected:
  void SetUp() override { register_all(); }
  void TearDown() override {
    for (const auto &[what, n] : hits_) {
      std::printf("%8llu %s\n", static_cast<unsigned long long>(n), what.c_str());
      EXPECT_GE(n, 20u) << what << " is hardly tested";
    }
  }

  std::vector<Tensor> run(const ir::Graph &graph, const std::vector<Tensor> &inputs) {
    auto out = evaluate(graph, inputs);
    EXPECT_TRUE(out) << (out ? "" : to_text(out.error()) + ir::print(graph));
    return out ? std::move(*out) : std::vector<Tensor>();
  }

  void apply(ir::Graph &graph, const std::vector<std::string> &passes) {
    Diagnostics diagnostics;
    pass::PipelineOptions options;
    options.collect_stats = true;
    std::vector<pass::PassRecord> records;
    ASSERT_TRUE(pass::run_pipeline(graph, passes, diagnostics, options, records))
        << to_text(diagnostics.all().front());
    for (const pass::PassRecord &r : records) {
      const bool counted =
          r.name != "optimize-circle" && r.name != "fold-constants" && r.name != "cse";
      if (counted && r.patterns.empty() && r.counters.rewrites)
        hits_[r.name] += r.counters.rewrites;
      for (const pass::PatternStats &p : r.patterns)
        if (counted)
          hits_[r.name + ": " + std::string(p.name)] += p.rewrites;
    }
  }

  static void expect_same(const std::vector<Tensor> &a, const std::vector<Tensor> &b,
                          const std::string &where, bool exact) {
    ASSERT_EQ(a.size(), b.size()) << where;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(difference(a[i], b[i]), "") << where;
      for (i64 k = 0; exact && k < a[i].num_elements(); ++k)
        ASSERT_TRUE(a[i].at(k) == b[i].at(k) || std::isnan(a[i].at(k))) << where;
    }
  }

  std::map<std::string, u64> hits_;
};

/// Each pass by itself changes no bit and never leaves more of what it is there to lessen.
TEST_F(CircleRegions, EachPassKeepsEveryBit) {
  for (u64 seed = 0; seed < 800; ++seed) {
    for (const char *pass : {"sink-transposes", "assign-layouts", "cse-structural"}) {
      ir::Context ctx;
      const auto graph = circle::testing::RandomRegions(ctx, seed).make(10 + seed % 24);
      ASSERT_EQ(fault(*graph), "") << seed << "\n" << ir::print(*graph);
      apply(*graph, {"cse", "dce"});
      const std::string text = ir::print(*graph);
      const auto inputs = random_inputs(*graph, seed);
      const auto before = run(*graph, inputs);
      const u64 transposes = count(*graph, circle::op::TRANSPOSE),
                operators = circle::count_operators(*graph);
      apply(*graph, {pass, "cse", "dce"});
      const std::string where =
          pass + (" on seed " + std::to_string(seed)) + "\n" + text + "\n" + ir::print(*graph);
      ASSERT_EQ(fault(*graph), "") << where;
      expect_same(before, run(*graph, inputs), where, std::string(pass) != "sink-transposes");
      if (std::string(pass) == "assign-layouts") {
        ASSERT_LE(count(*graph, circle::op::TRANSPOSE), transposes) << where;
      }
      if (std::string(pass) == "cse-structural") {
        ASSERT_LE(circle::count_operators(*graph), operators) << where;
      }
      if (HasFailure())
        return;
    }
  }
  hits_.erase("dce");
  hits_.erase("assign-layouts: transposes-around-view"); // CircleRules counts it
}

std::unique_ptr<ir::Graph> either(ir::Context &ctx, u64 seed) {
  return seed % 2 ? circle::testing::RandomRegions(ctx, seed).make(10 + seed % 24)
                  : circle::testing::RandomCircle(ctx, seed).make(12 + seed % 20);
}

/// Operators that -O1 leaves of the same program.
u64 operators_at_level_one(u64 seed) {
  ir::Context ctx;
  const auto graph = either(ctx, seed);
  Diagnostics diagnostics;
  std::vector<pass::PassRecord> records;
  EXPECT_TRUE(pass::run_pipeline(*graph, circle::optimize_pipeline(1), diagnostics, {}, records));
  return circle::count_operators(*graph);
}

/// -O2 keeps the values and never leaves more operators than it was given, or than -O1 leaves.
TEST_F(CircleRegions, LevelTwoKeepsValuesAndAddsNothing) {
  for (u64 seed = 0; seed < 1000; ++seed) {
    ir::Context ctx;
    const auto graph = either(ctx, seed);
    const std::string text = ir::print(*graph);
    const auto inputs = random_inputs(*graph, seed);
    const auto before = run(*graph, inputs);
    const u64 given = circle::count_operators(*graph), simple = operators_at_level_one(seed);
    apply(*graph, circle::optimize_pipeline(2));
    const std::string where =
        "seed " + std::to_string(seed) + "\n" + text + "\n" + ir::print(*graph);
    ASSERT_EQ(fault(*graph), "") << where;
    expect_same(before, run(*graph, inputs), where, false);
    const u64 now = circle::count_operators(*graph);
    ASSERT_LE(now, given) << where;
    ASSERT_LE(now, simple) << "beside -O1, " << where;
    if (HasFailure())
      return;
  }
  hits_.clear();
}

/// ADD, BATCH_MATMUL and SPLIT_V as the custom operators that TensorFlow's converter leaves.
void make_custom(ir::Graph &graph) {
  ir::walk(graph, [&](ir::Op &op) {
    const ir::OpCode c = op.opcode();
    std::string_view code;
    std::vector<u8> options;
    if (c == circle::op::ADD && op.attr("fused_activation_function").as_string() == "NONE") {
      code = "AddV2";
    } else if (c == circle::op::BATCH_MATMUL) {
      flexbuffers::Builder b;
      b.Map([&] {
        b.Bool("adj_x", op.attr("adjoint_lhs").as_bool());
        b.Bool("adj_y", op.attr("adjoint_rhs").as_bool());
      });
      b.Finish();
      options = b.GetBuffer();
      code = op.id() % 2 ? "MatMul" : "BatchMatMulV2";
    } else if (c == circle::op::SPLIT_V) {
      code = "SplitV";
    }
    for (const ir::Use &u : op.operand_uses())
      if (u.value() && u.value()->type().quant())
        code = {};
    if (code.empty())
      return true;
    std::vector<ir::Value *> operands;
    for (const ir::Use &u : op.operand_uses())
      operands.push_back(u.value());
    std::vector<ir::Type> types;
    for (const ir::Value &v : op.results())
      types.push_back(v.type());
    ir::Builder b(graph, *op.parent(), &op);
    const ir::NamedAttr attrs[] = {
        {"custom_code", graph.context().string_attr(code)},
        {"custom_options", graph.context().string_attr(
                               {reinterpret_cast<const char *>(options.data()), options.size()})}};
    ir::Op *made = b.create_typed(circle::op::CUSTOM, operands, attrs, types);
    for (u32 i = 0; i < op.num_results(); ++i)
      graph.replace_all_uses(op.result(i), made->result(i));
    graph.erase(&op);
    return false;
  });
}

TEST_F(CircleRegions, ResolvedCustomOperatorsComputeWhatTheyStandFor) {
  for (u64 seed = 0; seed < 400; ++seed) {
    ir::Context ctx;
    const auto graph = circle::testing::RandomCircle(ctx, seed).make(16 + seed % 20);
    const auto inputs = random_inputs(*graph, seed);
    const auto before = run(*graph, inputs);
    const auto own = count(*graph, circle::op::CUSTOM); // no builtin operator stands for these
    make_custom(*graph);
    hits_["custom operators"] += count(*graph, circle::op::CUSTOM) - own;
    apply(*graph, {"resolve-custom-ops"});
    ASSERT_EQ(count(*graph, circle::op::CUSTOM), own) << ir::print(*graph);
    ASSERT_EQ(fault(*graph), "") << seed << ir::print(*graph);
    expect_same(before, run(*graph, inputs), "seed " + std::to_string(seed), true);
    if (HasFailure())
      return;
  }
}

} // namespace
} // namespace chute::eval

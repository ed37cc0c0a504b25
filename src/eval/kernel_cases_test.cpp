// Every kernel against PyTorch: testdata/kernel_cases.* were written by test/e2e/kernel_cases.py.

#include "aten/ops.h"
#include "eval/evaluator.h"
#include "eval/npz.h"
#include "ir/text.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace chute::eval {
namespace {

struct Case {
  std::string text;
  double tolerance = 0;
};

std::vector<Case> read_cases() {
  std::vector<Case> out;
  std::ifstream file(CHUTE_EVAL_TESTDATA "/kernel_cases.txt");
  double tolerance = 0;
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kTolerance = "# tolerance ";
    if (line.starts_with(kTolerance)) {
      tolerance = std::stod(line.substr(kTolerance.size()));
      continue;
    }
    if (line.starts_with("graph ")) {
      out.push_back({"", tolerance});
      tolerance = 0;
    }
    out.back().text += line + "\n";
  }
  return out;
}

/// Hands out the values of the archive, one pool per dtype, in order of use.
class Pools {
public:
  bool open() {
    auto arrays = read_numpy(CHUTE_EVAL_TESTDATA "/kernel_cases.npz");
    if (!arrays)
      return false;
    for (auto &[name, tensor] : *arrays)
      pools_[name] = {std::move(tensor), 0};
    return true;
  }
  Tensor take(ir::Type type) {
    Shape shape;
    for (const ir::SymInt d : type.shape())
      shape.push_back(d.value());
    Pool &p = pools_.at(pool_name(type.element()));
    Tensor t = Tensor::allocate(type.element(), shape);
    const size_t item = t.item_bytes();
    EXPECT_LE(p.at + t.num_elements(), p.values.num_elements());
    if (t.num_bytes())
      std::memcpy(t.mutable_data(), p.values.data() + static_cast<size_t>(p.at) * item,
                  t.num_bytes());
    p.at += t.num_elements();
    return t;
  }
  bool used_up() const {
    for (const auto &[name, p] : pools_)
      if (p.at != p.values.num_elements())
        return false;
    return true;
  }

private:
  struct Pool {
    Tensor values;
    i64 at = 0;
  };
  /// Types that numpy lacks travel as integers of the same width.
  static std::string pool_name(ElementType e) {
    switch (e) {
    case ElementType::Bool: return "b1";
    case ElementType::BF16: return "i2";
    case ElementType::F8E4M3FN:
    case ElementType::F8E5M2: return "u1";
    default: break;
    }
    const char kind = ir::is_complex(e)  ? 'c'
                      : ir::is_float(e)  ? 'f'
                      : ir::is_signed(e) ? 'i'
                                         : 'u';
    return kind + std::to_string(ir::element_bytes(e));
  }
  std::map<std::string, Pool> pools_;
};

double default_tolerance(ElementType e) {
  switch (e) {
  case ElementType::F16: return 1e-3;
  case ElementType::BF16: return 8e-3;
  case ElementType::F32: return 2e-6;
  case ElementType::F64: return 1e-12;
  default: return 0;
  }
}

/// The first difference beyond the tolerance (relative, and absolute below 1), or "".
std::string difference(const Tensor &got, const Tensor &want, double tolerance) {
  if (got.element() != want.element() || got.shape() != want.shape())
    return "another type";
  if (tolerance == 0)
    tolerance = default_tolerance(want.element());
  for (i64 i = 0; i < want.num_elements(); ++i) {
    const double a = got.at(i);
    const double b = want.at(i);
    const bool both_nan = std::isnan(a) && std::isnan(b);
    const bool close = a == b || std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
    if (!both_nan && !close) {
      std::ostringstream out;
      out.precision(10);
      out << "element " << i << " is " << a << ", PyTorch has " << b;
      return out.str();
    }
  }
  return {};
}

TEST(KernelCases, AgreeWithPyTorchAndDoNotDependOnThreads) {
  aten::register_dialect();
  Pools pools;
  ASSERT_TRUE(pools.open());
  const std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 700u);
  for (const Case &c : cases) {
    ir::Context context;
    auto graph = ir::parse(context, c.text);
    ASSERT_TRUE(graph) << c.text << graph.error().message;
    std::vector<Tensor> inputs;
    for (const ir::Value *arg : (*graph)->body().args())
      inputs.push_back(pools.take(arg->type()));
    std::vector<Tensor> expected;
    const ir::Op *ret = (*graph)->return_op();
    for (u32 i = 0; i < ret->num_operands(); ++i)
      expected.push_back(pools.take(ret->operand(i)->type()));
    EvalOptions options;
    options.threads = 1;
    const auto one = evaluate(**graph, inputs, options);
    if (!one) {
      ADD_FAILURE() << c.text << one.error().code << ": " << one.error().message;
      continue;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string d = difference((*one)[i], expected[i], c.tolerance);
      EXPECT_EQ(d, "") << c.text << "output " << i;
    }
    for (const int threads : {2, 5}) {
      options.threads = threads;
      const auto more = evaluate(**graph, inputs, options);
      ASSERT_TRUE(more);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(same_bits((*one)[i], (*more)[i])) << c.text << threads << " threads";
    }
  }
  EXPECT_TRUE(pools.used_up()) << "text and arrays are of different runs";
}

} // namespace
} // namespace chute::eval

#include "aten/infer.h"

#include "aten/ops.h"
#include "aten/promotion.h"
#include "aten/shapes.h"
#include "ir/builder.h"

#include <array>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <string>

namespace chute::aten {
namespace {

using ir::Attr;
using ir::ElementType;
using ir::SymInt;
using ir::Type;

std::string print(ir::Context &ctx, Type t) {
  if (!t.is_tensor())
    return t == ctx.int_type() ? "int" : t == ctx.bool_type() ? "bool" : "float";
  std::string s(ir::element_type_name(t.element()));
  s += "[";
  for (int i = 0; i < t.rank(); ++i)
    s += (i ? "," : "") + ctx.sym().print(t.dim(i));
  return s + "]";
}

/// One line of test/data/infer_cases.txt; the grammar is in test/e2e/infer_cases.py.
class CaseReader {
public:
  CaseReader(std::string_view text, ir::Graph &graph) : text_(text), graph_(graph) {}

  /// Operands in table order and, for two variadic ones, their counts.
  void operands(std::vector<ir::Value *> &out, std::vector<SymInt> &segments) {
    for (skip(); at_ < text_.size(); skip()) {
      const size_t before = out.size();
      if (eat('(')) {
        for (skip(); !eat(')'); skip())
          out.push_back(operand());
      } else {
        out.push_back(operand());
      }
      segments.emplace_back(static_cast<i64>(out.size() - before));
    }
  }

  Attr value(ir::AttrType wanted) {
    ir::Context &ctx = graph_.context();
    if (eat('@'))
      return Attr::of_element(*ir::parse_element_type(word()));
    if (eat('"')) {
      const size_t end = text_.find('"', at_);
      const std::string_view s = text_.substr(at_, end - at_);
      at_ = end + 1;
      return ctx.string_attr(s);
    }
    if (!eat('['))
      return scalar();
    std::vector<SymInt> ints;
    std::vector<double> floats;
    while (!eat(']')) {
      const Attr a = scalar();
      floats.push_back(a.scalar_as_double());
      ints.emplace_back(a.kind() == ir::AttrKind::Int ? a.as_int() : SymInt(0));
      eat(',');
    }
    return wanted == ir::AttrType::Floats ? ctx.floats_attr(floats) : ctx.ints_attr(ints);
  }

  std::string_view name() {
    skip();
    const size_t end = text_.find('=', at_);
    const std::string_view s = text_.substr(at_, end - at_);
    at_ = end + 1;
    return s;
  }
  bool at_end() {
    skip();
    return at_ >= text_.size();
  }

private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool eat(char c) {
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    const size_t start = at_;
    while (at_ < text_.size() && text_.find_first_of(" ,[]()", at_) != at_)
      ++at_;
    return text_.substr(start, at_ - start);
  }
  ir::Value *operand() {
    if (eat('-'))
      return nullptr;
    const ElementType e = *ir::parse_element_type(word());
    eat('[');
    std::vector<SymInt> shape;
    while (!eat(']')) {
      shape.emplace_back(std::stoll(std::string(word())));
      eat(',');
    }
    return graph_.add_argument(graph_.body(), graph_.context().tensor_type(e, shape));
  }
  Attr scalar() {
    const std::string w(word());
    if (w == "true" || w == "false")
      return Attr::of_bool(w == "true");
    if (w.find_first_of(".en") != std::string::npos)
      return Attr::of_float(std::stod(w));
    return Attr::of_int(std::stoll(w));
  }

  std::string_view text_;
  size_t at_ = 0;
  ir::Graph &graph_;
};

std::vector<std::string_view> fields(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = 0;;) {
    const size_t end = line.find(" | ", at);
    out.push_back(line.substr(at, end - at));
    if (end == std::string_view::npos)
      return out;
    at = end + 3;
  }
}

/// Inferred result types as the file writes them, or the error.
std::string inferred(std::string_view operator_name, std::string_view operands,
                     std::string_view attrs) {
  ir::Context ctx;
  ir::Graph graph(ctx);
  const ir::OpDef *def = ir::Registry::global().find(operator_name);
  if (!def)
    return "unknown operator";
  std::vector<ir::Value *> values;
  std::vector<SymInt> segments;
  CaseReader(operands, graph).operands(values, segments);
  std::vector<ir::NamedAttr> named;
  CaseReader reader(attrs, graph);
  while (!reader.at_end()) {
    const std::string_view name = reader.name();
    const int slot = def->attr_index(name);
    if (slot < 0)
      return "no attribute " + std::string(name);
    named.push_back({name, reader.value(def->attrs[static_cast<size_t>(slot)].type)});
  }
  if (def->attr_index("segments") >= 0)
    named.push_back({"segments", ctx.ints_attr(segments)});
  ir::Builder builder(graph, graph.body());
  const Result<ir::Op *> op = builder.try_create(def->opcode, values, named);
  if (!op)
    return to_text(op.error());
  std::string out;
  for (const ir::Value &v : (*op)->results())
    out += (out.empty() ? "" : " ") + print(ctx, v.type());
  return out;
}

/// What the traits promise of types, on the types that PyTorch gave.
std::string broken_trait(std::string_view operator_name, std::string_view operands,
                         std::string_view results) {
  const ir::OpDef *def = ir::Registry::global().find(operator_name);
  if (!def)
    return {};
  const auto first = [](std::string_view list) { return list.substr(0, list.find(' ')); };
  if (def->has(ir::trait::kSameType) && first(results) != first(operands))
    return "kSameType";
  if (def->has(ir::trait::kComparison) && !results.starts_with("bool["))
    return "kComparison";
  const auto element = [](std::string_view type) { return type.substr(0, type.find('[')); };
  if (def->has(ir::trait::kMovement) && !def->has(ir::trait::kPromotes) &&
      def->operands[0].arity == ir::OperandArity::One && !results.empty() &&
      element(first(results)) != element(first(operands)))
    return "kMovement";
  if (def->has(ir::trait::kIntToFloat) && (results.starts_with("i") || results.starts_with("u")))
    return "kIntToFloat";
  return {};
}

TEST(Infer, AgreesWithPyTorch) {
  register_dialect();
  std::ifstream file(CHUTE_TEST_DATA "/infer_cases.txt");
  ASSERT_TRUE(file) << "test/data/infer_cases.txt is missing";
  size_t cases = 0;
  std::map<std::string, int> wrong;
  for (std::string line; std::getline(file, line); ++cases) {
    line += "  "; // an empty last field still has its separator
    const auto f = fields(line);
    ASSERT_EQ(f.size(), 4u) << line;
    std::string expected(f[3]);
    expected.erase(expected.find_last_not_of(' ') + 1);
    const std::string got = inferred(f[0], f[1], f[2]);
    if (got != expected && ++wrong[std::string(f[0])] <= 3)
      ADD_FAILURE() << line << "\n  inferred " << got;
    EXPECT_EQ(broken_trait(f[0], f[1], expected), "") << line;
  }
  EXPECT_GT(cases, 5000u);
}

// --- symbolic shapes and errors ------------------------------------------------------------------

/// Builds operators over one graph; dimensions are written as symbolic text ("s0*2").
class InferSymbolic : public testing::Test {
protected:
  void SetUp() override {
    register_dialect();
    ctx_.sym().set_range(ctx_.sym().symbol("s0"), {2, 1 << 20});
    ctx_.sym().set_range(ctx_.sym().symbol("s1"), {2, 1 << 20});
  }
  SymInt dim(std::string_view text) { return *ctx_.sym().parse(text); }
  ir::Value *tensor(std::initializer_list<std::string_view> dims,
                    ElementType e = ElementType::F32) {
    std::vector<SymInt> shape;
    for (std::string_view d : dims)
      shape.push_back(dim(d));
    return graph_.add_argument(graph_.body(), ctx_.tensor_type(e, shape));
  }
  /// Result types as text, or the error's code.
  std::string infer(ir::OpCode code, std::vector<ir::Value *> operands,
                    std::vector<ir::NamedAttr> attrs = {}) {
    ir::Builder b(graph_, graph_.body());
    const Result<ir::Op *> op = b.try_create(code, operands, attrs);
    if (!op)
      return op.error().code;
    std::string out;
    for (const ir::Value &v : (*op)->results())
      out += (out.empty() ? "" : " ") + print(ctx_, v.type());
    return out;
  }
  Attr ints(std::initializer_list<std::string_view> values) {
    std::vector<SymInt> v;
    for (std::string_view t : values)
      v.push_back(dim(t));
    return ctx_.ints_attr(v);
  }

  ir::Context ctx_;
  ir::Graph graph_{ctx_};
};

TEST_F(InferSymbolic, Broadcasting) {
  EXPECT_EQ(infer(op::add_Tensor, {tensor({"s0", "1", "3"}), tensor({"s1", "1"})}), "f32[s0,s1,3]");
  EXPECT_EQ(infer(op::add_Tensor, {tensor({"s0 + 1"}), tensor({"1 + s0"})}), "f32[s0 + 1]");
  EXPECT_EQ(infer(op::add_Tensor, {tensor({"s0"}), tensor({"s1"})}), "aten.infer.shape");
  EXPECT_EQ(infer(op::add_Tensor, {tensor({"s0"}), tensor({"4"})}), "aten.infer.shape");
}

TEST_F(InferSymbolic, Views) {
  ir::Value *x = tensor({"s0", "4", "s1"});
  EXPECT_EQ(infer(op::view, {x}, {{"size", ints({"s0", "-1"})}}), "f32[s0,4*s1]");
  EXPECT_EQ(infer(op::view, {x}, {{"size", ints({"-1", "2", "s1"})}}), "f32[2*s0,2,s1]");
  EXPECT_EQ(infer(op::flatten_using_ints, {x}, {{"start_dim", Attr::of_int(1)}}), "f32[s0,4*s1]");
  EXPECT_EQ(infer(op::unflatten_int, {tensor({"2*s0"})},
                  {{"dim", Attr::of_int(0)}, {"sizes", ints({"-1", "2"})}}),
            "f32[s0,2]");
  EXPECT_EQ(infer(op::view, {tensor({"6"})}, {{"size", ints({"4", "-1"})}}), "aten.infer.shape");
  EXPECT_EQ(infer(op::view, {tensor({"6"})}, {{"size", ints({"7"})}}), "aten.infer.shape");
}

TEST_F(InferSymbolic, SlicesStayPlainWhereRangesDecide) {
  const auto slice = [&](Attr start, Attr end, i64 step = 1) {
    return infer(op::slice_Tensor, {tensor({"s0"})},
                 {{"start", start}, {"end", end}, {"step", Attr::of_int(step)}});
  };
  const auto i = [](i64 v) { return Attr::of_int(v); };
  EXPECT_EQ(slice(i(0), i(std::numeric_limits<i64>::max())), "f32[s0]");
  EXPECT_EQ(slice(i(1), Attr::none()), "f32[s0 - 1]");
  EXPECT_EQ(slice(i(0), i(-1)), "f32[s0 - 1]");
  EXPECT_EQ(slice(i(0), i(2)), "f32[2]");
  EXPECT_EQ(slice(i(0), i(5)), "f32[" + ctx_.sym().print(ctx_.sym().min(5, dim("s0"))) + "]");
  EXPECT_EQ(slice(i(-1), Attr::none()), "f32[1]");
}

TEST_F(InferSymbolic, JoinsAndSplits) {
  const std::vector<ir::Value *> two{tensor({"s0", "3"}), tensor({"s1", "3"})};
  EXPECT_EQ(infer(op::cat, two), "f32[s0 + s1,3]");
  EXPECT_EQ(infer(op::split_Tensor, {tensor({"3*s0"})}, {{"split_size", Attr::of_int(dim("s0"))}}),
            "f32[s0] f32[s0] f32[s0]");
  EXPECT_EQ(infer(op::chunk, {tensor({"2*s0"})}, {{"chunks", Attr::of_int(2)}}), "f32[s0] f32[s0]");
  EXPECT_EQ(infer(op::unbind_int, {tensor({"s0"})}), "aten.infer.shape");
}

TEST_F(InferSymbolic, Windows) {
  ir::Value *x = tensor({"s0", "3", "s1", "8"}), *w = tensor({"4", "3", "3", "3"});
  EXPECT_EQ(infer(op::conv2d, {x, w, nullptr}, {{"stride", ints({"2", "2"})}}),
            "f32[s0,4,floordiv(s1 - 3, 2) + 1,3]");
  EXPECT_EQ(infer(op::conv2d, {x, w, nullptr}, {{"padding", ints({"1", "1"})}}), "f32[s0,4,s1,8]");
  EXPECT_EQ(infer(op::conv2d, {x, w, nullptr}, {{"stride", ints({"0", "1"})}}), "aten.infer.attr");
  EXPECT_EQ(infer(op::upsample_nearest2d_vec, {tensor({"1", "3", "s0", "4"})},
                  {{"output_size", Attr::none()},
                   {"scale_factors", ctx_.floats_attr(std::array{2.0, 1.5})}}),
            "f32[1,3,2*s0,6]");
}

TEST_F(InferSymbolic, DataDependentShapesAreErrors) {
  ir::Value *x = tensor({"s0", "3"}), *mask = tensor({"s0"}, ElementType::Bool);
  EXPECT_EQ(infer(op::nonzero, {x}), "aten.infer.data_dependent");
  EXPECT_EQ(infer(op::masked_select, {x, mask}), "aten.infer.data_dependent");
  EXPECT_EQ(infer(op::index_Tensor, {x, mask}), "aten.infer.data_dependent");
}

TEST_F(InferSymbolic, WrongDimensionsAndTypesAreErrors) {
  ir::Value *x = tensor({"2", "3"});
  EXPECT_EQ(infer(op::sum_dim_IntList, {x}, {{"dim", ints({"2"})}}), "aten.infer.dim");
  EXPECT_EQ(infer(op::mean_dim, {tensor({"2"}, ElementType::I64)}, {{"dim", ints({"0"})}}),
            "aten.infer.dtype");
  EXPECT_EQ(infer(op::mm, {x, x}), "aten.infer.shape");
  EXPECT_EQ(
      infer(op::add_Tensor, {tensor({"2"}, ElementType::U16), tensor({"2"}, ElementType::I32)}),
      "aten.infer.dtype");
  ir::Value *number = graph_.add_argument(graph_.body(), ctx_.int_type());
  EXPECT_EQ(infer(op::relu, {number}), "aten.infer.operand");
}

TEST_F(InferSymbolic, PerTensorQuantizationTravelsWithMovement) {
  const float scale = 0.5f;
  ir::Quantization per_tensor;
  per_tensor.scales = std::span(&scale, 1);
  const ir::Quantization *q = ctx_.quantization(per_tensor);
  const Type t = ctx_.tensor_type(ElementType::I8, std::array{SymInt(2), SymInt(3)}, q);
  ir::Value *x = graph_.add_argument(graph_.body(), t);
  ir::Builder b(graph_, graph_.body());
  EXPECT_EQ(b.create(op::permute, {x}, {{"dims", ints({"1", "0"})}})->type().quant(), q);
  EXPECT_EQ(b.create(op::add_Tensor, {x, x})->type().quant(), nullptr);
}

// --- promotion -----------------------------------------------------------------------------------

TEST(Promotion, CategoriesDecide) {
  ir::Context ctx;
  const auto t = [&](ElementType e, bool dimensions) {
    return dimensions ? ctx.tensor_type(e, {SymInt(2)}) : ctx.tensor_type(e, {});
  };
  using enum ElementType;
  // A rank-0 tensor or a Python number raises the category only, never the width within it.
  EXPECT_EQ(result_type(std::array{t(F16, true), t(F32, false)}), F16);
  EXPECT_EQ(result_type(std::array{t(I32, true), t(F64, false)}), F64);
  EXPECT_EQ(result_type(std::array{t(I8, true)}, std::array{Attr::of_int(1000)}), I8);
  EXPECT_EQ(result_type(std::array{t(I8, true)}, std::array{Attr::of_float(1)}), F32);
  EXPECT_EQ(result_type(std::array{t(I8, false)}, std::array{Attr::of_int(1)}), I8);
  EXPECT_EQ(result_type(std::array{t(Bool, true)}, std::array{Attr::of_int(1)}), I64);
  EXPECT_EQ(result_type(std::array{t(F16, true), t(BF16, true)}), F32);
  EXPECT_EQ(result_type(std::array{t(U8, true), t(I8, true)}), I16);
  EXPECT_EQ(result_type(std::array{t(F64, true)}, std::array{ctx.complex_attr(0, 1)}), C128);
  EXPECT_EQ(result_type(std::array{t(F8E4M3FN, true), t(F32, true)}), std::nullopt);
  EXPECT_EQ(result_type({}), std::nullopt);
}

TEST(Promotion, PairwiseIsCommutativeAndKeepsItself) {
  for (int i = 1; i < ir::kNumElementTypes; ++i)
    for (int j = 1; j < ir::kNumElementTypes; ++j) {
      const auto a = static_cast<ElementType>(i), b = static_cast<ElementType>(j);
      EXPECT_EQ(promote_types(a, b), promote_types(b, a));
      if (i == j) {
        EXPECT_EQ(promote_types(a, b), a);
      }
    }
}

TEST(Table, EveryRowHasInference) {
  register_dialect();
  size_t rows = 0;
  for (const ir::OpDef *def : ir::Registry::global().all()) {
    if (ir::index(def->opcode) < ir::kAtenBase || ir::index(def->opcode) >= ir::kCircleBase)
      continue;
    ++rows;
    EXPECT_NE(def->infer, nullptr) << def->name;
    const bool both = def->has(ir::trait::kPure) &&
                      (def->has(ir::trait::kInPlace) || def->has(ir::trait::kRandom) ||
                       def->has(ir::trait::kEffect));
    EXPECT_FALSE(both) << def->name;
    if (def->has(ir::trait::kCommutative)) {
      EXPECT_GE(def->operands.size(), 2u) << def->name;
    }
  }
  EXPECT_GT(rows, 790u);
}

} // namespace
} // namespace chute::aten

#include "aten/infer.h"

#include "aten/ops.h"
#include "aten/promotion.h"
#include "aten/shapes.h"
#include "ir/builder.h"

#include <fstream>
#include <gtest/gtest.h>
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

} // namespace
} // namespace chute::aten

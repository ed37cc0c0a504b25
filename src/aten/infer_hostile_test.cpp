// Inference on operands and attributes that fit the schema and make no sense: an answer or an
// error, never a crash. The reader gives it whatever a file holds.

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/sym_table.h"

#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace chute::aten {
namespace {

using ir::Attr;
using ir::AttrType;
using ir::ElementType;
using ir::SymInt;

class Garbage {
public:
  Garbage(ir::Graph &graph, u64 seed) : graph_(graph), random_(seed) {}

  std::vector<ir::Value *> operands(const ir::OpDef &def, std::vector<SymInt> &segments) {
    std::vector<ir::Value *> out;
    for (const ir::OperandSpec &spec : def.operands) {
      using enum ir::OperandArity;
      const bool list = spec.arity == Variadic || spec.arity == VariadicOptional;
      const bool optional = spec.arity == Optional || spec.arity == VariadicOptional;
      const u64 n = list ? below(4) : 1;
      for (u64 i = 0; i < n; ++i)
        out.push_back(optional && below(3) == 0 ? nullptr : tensor());
      segments.emplace_back(static_cast<i64>(n));
    }
    return out;
  }

  Attr attr(const ir::AttrSpec &spec) {
    ir::Context &ctx = graph_.context();
    if (spec.nullable && below(4) == 0)
      return Attr::none();
    switch (spec.type) {
    case AttrType::Int: return Attr::of_int(integer());
    case AttrType::Float: return Attr::of_float(real());
    case AttrType::Bool: return Attr::of_bool(below(2));
    case AttrType::String: {
      constexpr std::array<std::string_view, 8> kTexts{
          "", "same", "ij,jk->ik", "...i->i...", "a\xff,->z", "->", "floor", "xy"};
      return ctx.string_attr(kTexts[below(kTexts.size())]);
    }
    case AttrType::Element: return Attr::of_element(element());
    case AttrType::Scalar: {
      const u64 kind = below(3);
      if (kind == 0)
        return Attr::of_float(real());
      return kind == 1 ? Attr::of_bool(below(2)) : Attr::of_int(integer());
    }
    case AttrType::Floats: {
      std::vector<double> v(below(4));
      for (double &x : v)
        x = real();
      return ctx.floats_attr(v);
    }
    case AttrType::Bools: {
      const std::array<bool, 3> v{true, false, true};
      return ctx.bools_attr(std::span(v.data(), below(4)));
    }
    case AttrType::Strings: return ctx.strings_attr({});
    case AttrType::Any: return Attr::of_int(integer());
    default: {
      std::vector<SymInt> v(below(5));
      for (SymInt &x : v)
        x = integer();
      return ctx.ints_attr(v);
    }
    }
  }

private:
  u64 below(u64 n) { return random_() % n; }

  SymInt integer() {
    constexpr std::array<i64, 8> kExtremes{std::numeric_limits<i64>::max(),
                                           std::numeric_limits<i64>::max() - 1,
                                           -std::numeric_limits<i64>::max() / 2,
                                           std::numeric_limits<i64>::min(),
                                           i64{1} << 40,
                                           -(i64{1} << 40),
                                           i64{1} << 62,
                                           1000};
    const u64 kind = below(8);
    if (kind == 0)
      return kExtremes[below(kExtremes.size())];
    if (kind == 1)
      return graph_.context().sym().symbol("s0");
    return static_cast<i64>(below(9)) - 3;
  }

  double real() {
    constexpr std::array<double, 6> kValues{0.0,
                                            -1.5,
                                            2.0,
                                            1e300,
                                            std::numeric_limits<double>::quiet_NaN(),
                                            std::numeric_limits<double>::infinity()};
    return kValues[below(kValues.size())];
  }

  ElementType element() {
    return static_cast<ElementType>(1 + below(static_cast<u64>(ir::kNumElementTypes) - 1));
  }

  ir::Value *tensor() {
    constexpr std::array<i64, 8> kSizes{
        0, 1, 1, 2, 3, 4, i64{1} << 40, std::numeric_limits<i64>::max()};
    std::vector<SymInt> shape(below(6));
    for (SymInt &d : shape)
      d = below(6) ? SymInt(kSizes[below(kSizes.size())]) : graph_.context().sym().symbol("s0");
    const ElementType e = below(2) ? ElementType::F32 : element();
    return graph_.add_argument(graph_.body(), graph_.context().tensor_type(e, shape));
  }

  ir::Graph &graph_;
  std::mt19937_64 random_;
};

TEST(InferHostile, AnswersOrRefuses) {
  register_dialect();
  size_t answered = 0, refused = 0;
  for (const ir::OpDef *def : ir::Registry::global().all()) {
    if (ir::index(def->opcode) < ir::kAtenBase || ir::index(def->opcode) >= ir::kCircleBase ||
        def->has(ir::trait::kRegions))
      continue;
    ir::Context ctx;
    ir::Graph graph(ctx);
    Garbage garbage(graph, ir::index(def->opcode));
    for (int trial = 0; trial < 100; ++trial) {
      std::vector<SymInt> segments;
      const std::vector<ir::Value *> operands = garbage.operands(*def, segments);
      std::vector<ir::NamedAttr> attrs;
      for (const ir::AttrSpec &spec : def->attrs)
        if (spec.name == "segments")
          attrs.push_back({spec.name, ctx.ints_attr(segments)});
        else
          attrs.push_back({spec.name, garbage.attr(spec)});
      ir::Builder builder(graph, graph.body());
      const Result<ir::Op *> op = builder.try_create(def->opcode, operands, attrs);
      if (!op) {
        ++refused;
        EXPECT_FALSE(op.error().code.empty());
        continue;
      }
      ++answered;
      for (const ir::Value &v : (*op)->results()) {
        const bool sized = v.type().is_tensor();
        for (SymInt d : sized ? v.type().shape() : std::span<const SymInt>())
          EXPECT_TRUE(d.is_symbolic() || d.value() >= 0) << def->name;
      }
    }
  }
  EXPECT_GT(answered, 10000u);
  EXPECT_GT(refused, 10000u);
}

} // namespace
} // namespace chute::aten

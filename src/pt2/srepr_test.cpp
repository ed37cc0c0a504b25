#include "pt2/srepr.h"

#include <gtest/gtest.h>
#include <string>

namespace chute::pt2 {
namespace {

std::string read(const std::string &text) {
  ir::SymTable table;
  const auto e = parse_srepr(text, table);
  return e ? table.print(*e) : "(malformed)";
}

/// The value at s = 7, t = 3.
std::optional<i64> at(const std::string &text) {
  ir::SymTable table;
  const ir::SymInt s = table.symbol("s"), t = table.symbol("t");
  const auto e = parse_srepr(text, table);
  if (!e)
    return std::nullopt;
  return table.evaluate(*e, [&](ir::SymInt x) -> std::optional<i64> {
    return x == s ? std::optional<i64>(7) : x == t ? std::optional<i64>(3) : std::nullopt;
  });
}

constexpr const char *kS = "Symbol('s', positive=True, integer=True)";
constexpr const char *kT = "Symbol('t', integer=True)";

std::string call(const std::string &name, const std::string &a, const std::string &b) {
  return name + "(" + a + ", " + b + ")";
}

TEST(Srepr, Values) {
  EXPECT_EQ(at("Integer(-4)"), -4);
  EXPECT_EQ(at(kS), 7);
  EXPECT_EQ(at("Add(Mul(Integer(6), Symbol('s', integer=True)), Integer(1))"), 43);
  EXPECT_EQ(at(call("Add", call("Mul", kS, kT), "Integer(1)")), 22);
  EXPECT_EQ(at(call("FloorDiv", kS, kT)), 2);
  EXPECT_EQ(at(call("FloorDiv", "Mul(Integer(-1), Symbol('s', integer=True))", kT)), -3);
  EXPECT_EQ(at(call("CeilDiv", kS, kT)), 3);
  EXPECT_EQ(at(call("Mod", kS, kT)), 1);
  EXPECT_EQ(at(call("PythonMod", kS, kT)), 1);
  EXPECT_EQ(at(call("Max", kS, kT)), 7);
  EXPECT_EQ(at(call("Min", kS, kT)), 3);
  EXPECT_EQ(at(call("Pow", kS, "Integer(2)")), 49);
  EXPECT_EQ(at("CeilToInt(" + call("IntTrueDiv", kS, kT) + ")"), 3);
  EXPECT_EQ(at("FloorToInt(" + call("IntTrueDiv", kS, kT) + ")"), 2);
  EXPECT_EQ(at("TruncToInt(" + call("IntTrueDiv", kS, kT) + ")"), 2);
  EXPECT_EQ(at("ModularIndexing(" + std::string(kS) + ", Integer(2), Integer(2))"), 1);
  EXPECT_EQ(at("Identity(" + std::string(kS) + ")"), 7);
  EXPECT_EQ(at(call("GreaterThan", kS, kT)), 1);
  EXPECT_EQ(at(call("StrictGreaterThan", kS, "Integer(7)")), 0);
  EXPECT_EQ(at(call("LessThan", kS, "Integer(7)")), 1);
  EXPECT_EQ(at(call("StrictLessThan", kS, kT)), 0);
  EXPECT_EQ(at(call("Equality", kS, kT)), 0);
  EXPECT_EQ(at(call("Unequality", kS, kT)), 1);
  EXPECT_EQ(at("Where(" + call("Equality", kS, kT) + ", Integer(1), Integer(2))"), 2);
  EXPECT_EQ(at(call("And", call("LessThan", kT, kS), "true")), 1);
  EXPECT_EQ(at("Not(" + call("LessThan", kT, kS) + ")"), 0);
  EXPECT_EQ(at("2*s + 1"), 15); // torch 2.5
}

TEST(Srepr, EqualTextsOfEqualSums) {
  EXPECT_EQ(read("Add(Symbol('a'), Symbol('b'))"), read("Add(Symbol('b'), Symbol('a'))"));
  EXPECT_EQ(read("Mul(Integer(2), Add(Symbol('a'), Integer(1)))"),
            read("Add(Mul(Symbol('a'), Integer(2)), Integer(2))"));
}

TEST(Srepr, UnknownFunctionsStayOpaque) {
  for (const char *text :
       {"RShift(Symbol('a'), Integer(1))", "Rational(1, 2)", "ToFloat(Symbol('a'))",
        "Float('0.5', precision=53)", "Integer(99999999999999999999)"})
    EXPECT_NE(read(text), "(malformed)") << text;
  EXPECT_EQ(at("RShift(Symbol('s'), Integer(1))"), std::nullopt);
}

TEST(Srepr, Malformed) {
  std::string deep = "Symbol('s')";
  for (int i = 0; i < 100; ++i)
    deep = "Max(" + deep + ", Integer(1))";
  for (const std::string &text :
       {std::string(""), std::string("Integer("), std::string("Integer(x)"),
        std::string("Integer(1"), std::string("Symbol(s)"), std::string("Symbol('a b')"),
        std::string("Symbol('')"), std::string("Add(Integer(1), )"),
        std::string("Add(Integer(1)) x"), std::string("(1)"), deep,
        "Add(" + std::string(20000, ' ') + "Integer(1))"})
    EXPECT_EQ(read(text), "(malformed)") << text.substr(0, 50);
}

} // namespace
} // namespace chute::pt2

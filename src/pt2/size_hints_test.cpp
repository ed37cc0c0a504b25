#include "pt2/size_hints.h"

#include <gtest/gtest.h>

namespace chute::pt2 {
namespace {

using Hints = std::vector<std::pair<std::string, i64>>;

TEST(SizeHints, SymbolsInOrderOfAppearance) {
  EXPECT_EQ(
      size_hints(
          R"j([{"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)",)j"
          R"j( "hint": {"as_int": 2}}}, {"as_expr":{"expr_str":"Symbol('s0')",)j"
          R"j("hint":{"as_int":8}}}, {"expr_str": "Symbol('s77')", "hint": {"as_int": 3}}])j"),
      (Hints{{"s77", 2}, {"s0", 8}}));
}

TEST(SizeHints, WhatHasNoneIsPassedOver) {
  EXPECT_EQ(size_hints(""), Hints());
  EXPECT_EQ(size_hints(R"j("expr_str")j"), Hints());
  EXPECT_EQ(size_hints(R"j({"expr_str": "Symbol('u0')", "hint": null})j"), Hints());
  EXPECT_EQ(size_hints(R"j({"expr_str": "Mul(Integer(2), Symbol('s0'))", "hint": {"as_int": 4}})j"),
            Hints());
  EXPECT_EQ(size_hints(R"j({"expr_str": "Symbol('s0')", "hint": {"as_int": 4x}})j"), Hints());
  EXPECT_EQ(size_hints(R"j({"expr_str": "Symbol('s0')", "hint": {"as_)j"), Hints());
}

} // namespace
} // namespace chute::pt2

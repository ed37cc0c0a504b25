#include "pt2/size_hints.h"

#include <gtest/gtest.h>

namespace chute::pt2 {
namespace {

using Hints = std::vector<std::pair<std::string, i64>>;

TEST(SizeHints, SymbolsInOrderOfAppearance) {
  EXPECT_EQ(size_hints(R"([{"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)",)"
                       R"( "hint": {"as_int": 2}}}, {"as_expr":{"expr_str":"Symbol('s0')",)"
                       R"("hint":{"as_int":8}}}, {"expr_str": "Symbol('s77')", "hint": {"as_int": 3}}])"),
            (Hints{{"s77", 2}, {"s0", 8}}));
}

TEST(SizeHints, WhatHasNoneIsPassedOver) {
  EXPECT_EQ(size_hints(""), Hints());
  EXPECT_EQ(size_hints(R"("expr_str")"), Hints());
  EXPECT_EQ(size_hints(R"({"expr_str": "Symbol('u0')", "hint": null
})"), Hints());
  EXPECT_EQ(size_hints(R"({"expr_str": "Mul(Integer(2), Symbol('s0'))", "hint": {"as_int": 4}
})"), Hints());
  EXPECT_EQ(size_hints(R"({"expr_str": "Symbol('s0')", "hint": {"as_int": 4x}
})"), Hints());
  EXPECT_EQ(size_hints(R"({"expr_str": "Symbol('s0')", "hint": {"as_)"), Hints());
}

} // namespace
} // namespace chute::pt2

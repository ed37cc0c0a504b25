#include "ir/sym_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <random>

namespace chute::ir {
namespace {

TEST(SymTable, EqualSumsAndProductsHaveOneHandle) {
  SymTable t;
  const SymInt a = t.symbol("a"), b = t.symbol("b");
  EXPECT_EQ(t.add(a, b), t.add(b, a));
  EXPECT_EQ(t.mul(t.add(a, 1), t.sub(a, 1)), t.sub(t.mul(a, a), 1));
  EXPECT_EQ(t.sub(a, a), SymInt(0));
  EXPECT_EQ(t.mul(a, 0), SymInt(0));
  EXPECT_EQ(t.floordiv(t.mul(t.mul(a, b), 7), a), t.mul(b, 7));
  EXPECT_EQ(t.mod(t.mul(a, b), b), SymInt(0));
  EXPECT_EQ(t.symbol("a"), a);
  EXPECT_EQ(t.symbol_name(a), "a");
  EXPECT_EQ(t.symbol_name(t.add(a, 1)), "");
}

TEST(SymTable, ExactDivisionOfProducts) {
  SymTable t;
  const SymInt a = t.symbol("a"), b = t.symbol("b"), c = t.symbol("c");
  // The leading term must be chosen in an order that multiplication keeps.
  const SymInt divisor = t.add(a, t.mul(a, b));
  EXPECT_EQ(t.exact_div(t.mul(divisor, c), divisor), c);
  EXPECT_EQ(t.exact_div(t.mul(divisor, c), c), divisor);
  EXPECT_EQ(t.exact_div(t.add(a, 1), 2), std::nullopt);
  EXPECT_EQ(t.exact_div(a, 0), std::nullopt);
  EXPECT_EQ(t.exact_div(t.literal(std::numeric_limits<i64>::min()), -1), std::nullopt);
}

TEST(SymTable, Ranges) {
  SymTable t;
  const SymInt a = t.symbol("a"), n = t.symbol("n");
  EXPECT_EQ(t.range(a), (SymRange{0, std::numeric_limits<i64>::max()}));
  t.set_range(a, {2, 10});
  t.set_range(n, {-5, 5});
  EXPECT_EQ(t.range(a), (SymRange{2, 10}));
  EXPECT_EQ(t.range(n), (SymRange{-5, 5}));
  EXPECT_EQ(t.range(t.add(t.mul(a, 3), 1)), (SymRange{7, 31}));
  EXPECT_EQ(t.range(t.sub(4, a)), (SymRange{-6, 2}));
  EXPECT_EQ(t.max(a, 1), a);
  EXPECT_EQ(t.min(a, 10), a);
  EXPECT_EQ(t.max(a, 11), SymInt(11));
  EXPECT_TRUE(t.max(a, 5).is_symbolic());
}

TEST(SymTable, TextDoesNotDependOnHistory) {
  SymTable first, second;
  first.symbol("z");
  second.floordiv(second.symbol("a"), 2);
  for (SymTable *t : {&first, &second}) {
    const auto e = t->parse("3 + z * a - 2*floordiv( a , 2 ) - -1*b");
    ASSERT_TRUE(e.has_value());
    EXPECT_EQ(t->print(*e), "a*z + b - 2*floordiv(a, 2) + 3");
    EXPECT_EQ(t->parse(t->print(*e)), e);
  }
}

TEST(SymTable, TextOfOddThings) {
  SymTable t;
  for (const SymInt e :
       {t.symbol("a b"), t.symbol(""), t.symbol("1"), t.opaque("f(\"x\\\")"), t.opaque("\n\xff"),
        t.literal(std::numeric_limits<i64>::min()), t.literal(std::numeric_limits<i64>::min() + 5),
        t.literal(std::numeric_limits<i64>::max()),
        t.mul(t.symbol("a"), t.literal(std::numeric_limits<i64>::min())),
        t.add(t.symbol("a"), t.literal(std::numeric_limits<i64>::min())),
        t.apply(SymOp::Where, std::array{t.symbol("a"), SymInt(1), t.symbol("b")})})
    EXPECT_EQ(t.parse(t.print(e)), e) << t.print(e);
  for (const char *bad : {"", "a +", "a b", "f(a)", "max(a)", "where(a, b)", "1x", "a)",
                          "opaque(a)", "opaque(\"", "99999999999999999999", "symbol(\"\\q\")"})
    EXPECT_EQ(t.parse(bad), std::nullopt) << bad;
}

TEST(SymTable, LiteralsAtTheEndsOfTheRange) {
  SymTable t;
  constexpr i64 kMin = std::numeric_limits<i64>::min();
  // What would be read as a handle is kept as an expression of one literal.
  const SymInt odd = t.literal(kMin + 3);
  EXPECT_EQ(t.evaluate(odd, [](SymInt) { return std::optional<i64>(); }), kMin + 3);
  for (const SymInt e : {t.floordiv(kMin, -1), t.mod(7, kMin), t.ceildiv(kMin, 3), t.mul(kMin, -1)})
    EXPECT_TRUE(e.is_symbolic());
  EXPECT_EQ(t.floordiv(-7, 2), SymInt(-4));
  EXPECT_EQ(t.ceildiv(-7, 2), SymInt(-3));
  EXPECT_EQ(t.mod(-7, 2), SymInt(1));
  EXPECT_EQ(t.mod(7, -2), SymInt(-1));
  EXPECT_EQ(t.floordiv(7, -1), SymInt(-7));
}

TEST(SymTable, OverflowNeverGivesAWrongNumber) {
  SymTable t;
  const SymInt a = t.symbol("a");
  const SymInt big = t.mul(a, i64{1} << 62);
  const SymInt sum = t.add(big, t.add(big, big));
  EXPECT_EQ(sum, t.add(t.add(big, big), big));
  // What overflowed is opaque: it has no value unless somebody knows one for it.
  const auto only_a = [&](SymInt s) { return s == a ? std::optional<i64>(1) : std::nullopt; };
  EXPECT_EQ(t.evaluate(sum, only_a), std::nullopt);
  EXPECT_EQ(t.evaluate(big, only_a), i64{1} << 62);
}

TEST(SymTable, RunawayExpressionsStayBounded) {
  SymTable t;
  SymInt e = t.symbol("a");
  for (int i = 0; i < 100'000; ++i) // an unrolled loop of strided layers; must not nest without end
    e = t.floordiv(t.add(e, 1), 2);
  EXPECT_LT(t.print(e).size(), 1u << 16);
  SymInt wide = 0;
  for (int i = 0; i < 200; ++i)
    wide = t.add(wide, t.symbol("symbol_with_a_long_name_" + std::to_string(i)));
  for (int i = 0; i < 20; ++i)
    wide = t.max(t.mul(t.add(wide, i), wide), i);
  EXPECT_LT(t.print(wide).size(), 1u << 17);
  EXPECT_EQ(t.parse(t.print(wide)), wide);
  EXPECT_EQ(t.parse(std::string(100'000, '(')), std::nullopt);
}

/// A random expression next to the same computed on numbers.
struct Random {
  explicit Random(u64 seed) : random(seed) {}
  std::mt19937_64 random;
  SymTable table;
  std::array<i64, 3> values{};
  std::array<SymInt, 3> symbols{};

  void start() {
    for (size_t i = 0; i < 3; ++i) {
      symbols[i] = table.symbol(std::string(1, static_cast<char>('a' + i)));
      table.set_range(symbols[i], {1, 20});
      values[i] = 1 + static_cast<i64>(random() % 20);
    }
  }
  std::optional<i64> lookup(SymInt s) const {
    for (size_t i = 0; i < 3; ++i)
      if (symbols[i] == s)
        return values[i];
    return std::nullopt;
  }
  static i64 floor_divide(i64 a, i64 b) {
    const i64 q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
  }
  std::pair<SymInt, i64> make(int depth) {
    if (depth == 0 || random() % 5 == 0) {
      if (random() % 2) {
        const size_t i = random() % 3;
        return {symbols[i], values[i]};
      }
      const i64 v = static_cast<i64>(random() % 9) - 4;
      return {v, v};
    }
    const auto [a, x] = make(depth - 1);
    const auto [b, y] = make(depth - 1);
    switch (random() % 8) {
    case 0: return {table.add(a, b), x + y};
    case 1: return {table.sub(a, b), x - y};
    case 2: return {table.mul(a, b), x * y};
    case 3: return {table.max(a, b), std::max(x, y)};
    case 4: return {table.min(a, b), std::min(x, y)};
    case 5: return y ? std::pair(table.floordiv(a, b), floor_divide(x, y)) : std::pair(a, x);
    case 6: return y ? std::pair(table.ceildiv(a, b), -floor_divide(-x, y)) : std::pair(a, x);
    default: return y ? std::pair(table.mod(a, b), x - floor_divide(x, y) * y) : std::pair(a, x);
    }
  }
};

RC_GTEST_PROP(SymTableProperty, EvaluatesAsTheNumbersDo, (u64 seed)) {
  Random r(seed);
  r.start();
  const auto [e, expected] = r.make(4);
  const auto value = r.table.evaluate(e, [&](SymInt s) { return r.lookup(s); });
  // Opaque atoms (overflow) have no value here; none of these is large enough for one.
  RC_ASSERT(value == expected);
  RC_ASSERT(r.table.parse(r.table.print(e)) == e);
  const SymRange range = r.table.range(e);
  RC_ASSERT((range.min <= expected && expected <= range.max));
}

RC_GTEST_PROP(SymTableProperty, ProductsDivideExactly, (u64 seed)) {
  Random r(seed);
  r.start();
  const SymInt a = r.make(3).first, b = r.make(3).first;
  RC_PRE(!(b == SymInt(0)));
  RC_ASSERT(r.table.exact_div(r.table.mul(a, b), b) == a);
}

} // namespace
} // namespace chute::ir

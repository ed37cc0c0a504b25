#include "toolkit/pattern.h"

#include <gtest/gtest.h>

namespace chute::toolkit {
namespace {

bool search(std::string_view pattern, std::string_view text) {
  auto p = Pattern::regex(pattern);
  EXPECT_TRUE(p) << pattern;
  return p && p->search(text);
}
bool full(std::string_view pattern, std::string_view text) {
  auto p = Pattern::regex(pattern);
  EXPECT_TRUE(p) << pattern;
  return p && p->matches(text);
}
bool glob(std::string_view pattern, std::string_view text) {
  auto p = Pattern::glob(pattern);
  EXPECT_TRUE(p) << pattern;
  return p && p->matches(text);
}

TEST(Pattern, Regex) {
  EXPECT_TRUE(search("blk", "a.blk3"));
  EXPECT_FALSE(full("blk", "a.blk3"));
  EXPECT_TRUE(full("blk", "blk"));
  EXPECT_TRUE(search(R"(blk\d+\.q$)", "blk12.q"));
  EXPECT_FALSE(search(R"(blk\d+\.q$)", "blk12.qt"));
  EXPECT_TRUE(full("a|bc|d", "bc"));
  EXPECT_TRUE(full("a|bc|d", "d"));
  EXPECT_FALSE(full("a|bc|d", "b"));
  EXPECT_TRUE(full("(ab|c)*d", "abcabd"));
  EXPECT_FALSE(full("(ab|c)+d", "d"));
  EXPECT_TRUE(full("y{2,3}", "yyy"));
  EXPECT_FALSE(full("y{2,3}", "yyyy"));
  EXPECT_TRUE(full("y{2,}", "yyyyy"));
  EXPECT_TRUE(full("((a|b){2}c)+", "abcbac"));
  EXPECT_TRUE(full("[^./]+", "abc"));
  EXPECT_FALSE(full("[^./]+", "a.c"));
  EXPECT_TRUE(full("[]a]+", "]a"));
  EXPECT_TRUE(search(R"(\bq\b)", "blk.q.w"));
  EXPECT_FALSE(search(R"(\bq\b)", "blk.qt"));
  EXPECT_TRUE(search("^$", ""));
  EXPECT_TRUE(search("", "anything"));
  EXPECT_TRUE(full("a.*?b", "axxb"));
  EXPECT_TRUE(full("a(|b)c", "ac"));
}

TEST(Pattern, Glob) {
  EXPECT_TRUE(glob("blk*.q", "blk12.q"));
  EXPECT_FALSE(glob("blk*.q", "blk12.qt"));
  EXPECT_TRUE(glob("*", ""));
  EXPECT_TRUE(glob("a?c[0-9]", "abc7"));
  EXPECT_FALSE(glob("a.c", "abc"));
}

TEST(Pattern, NoBacktracking) {
  EXPECT_FALSE(full("(a*)*b", std::string(20000, 'a')));
  EXPECT_FALSE(full("(a|aa)+$b", std::string(20000, 'a')));
}

TEST(Pattern, FaultsAreErrors) {
  for (const char *wrong : {"(", "a)", "[a", "*a", "a**", "x{3,2}", R"(\1)", "(?=a)", "\\", "[z-a]",
                            "((((x{100}){100}){100}){100})", "^*"}) {
    const auto p = Pattern::regex(wrong);
    ASSERT_FALSE(p) << wrong;
    EXPECT_EQ(p.error().code, "toolkit.pattern");
    EXPECT_EQ(p.error().kind, ErrorKind::Usage);
  }
  EXPECT_FALSE(Pattern::regex(std::string(1000, '(')));
}

} // namespace
} // namespace chute::toolkit

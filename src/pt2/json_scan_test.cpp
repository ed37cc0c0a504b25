#include "pt2/json_scan.h"

#include <gtest/gtest.h>
#include <random>

namespace chute::pt2 {
namespace {

std::vector<std::string> elements(const std::string &text) {
  ScanError e;
  const auto found = scan_array(text, 0, e);
  std::vector<std::string> out;
  if (!found)
    return {"error at " + std::to_string(e.offset) + ": " + e.message};
  for (const Extent &x : *found)
    out.push_back(text.substr(x.offset, x.size));
  return out;
}

using Strings = std::vector<std::string>;

TEST(JsonScan, Arrays) {
  EXPECT_EQ(elements("[]"), Strings{});
  EXPECT_EQ(elements("[ ]"), Strings{});
  EXPECT_EQ(elements("[1]"), Strings{"1"});
  EXPECT_EQ(elements("[ 1 ,\t[2, 3],{\"a\": [4,5]}\n]"),
            (Strings{"1", "[2, 3]", "{\"a\": [4,5]}"}));
  EXPECT_EQ(elements(R"(["a,]\"[", "\\"])"), (Strings{R"("a,]\"[")", R"("\\")"}));
}

TEST(JsonScan, Objects) {
  const std::string text = R"( {"a": 1, "b\"": {"c": [1, 2]} , "": "x,y"})";
  ScanError e;
  u64 end = 0;
  const auto found = scan_object(text, 1, e, &end);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].key, "a");
  EXPECT_EQ((*found)[1].key, "b\\\"");
  EXPECT_EQ(text.substr((*found)[1].value.offset, (*found)[1].value.size), R"({"c": [1, 2]})");
  EXPECT_EQ((*found)[2].key, "");
  EXPECT_EQ(end, text.size());
}

TEST(JsonScan, Malformed) {
  for (const char *text : {"", "[", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1,,2]", "[\"]", "[[1]",
                           "[1}", "{}", "[\"\\\"]"})
    EXPECT_EQ(elements(text).size(), 1u) << text;
  for (const char *text : {"[", "[1,]", "[\"]", "[1}"})
    EXPECT_TRUE(elements(text)[0].starts_with("error")) << text;
  ScanError e;
  for (const char *text :
       {"{", "{\"a\"}", "{\"a\":}", "{1: 2}", "{\"a\": 1,}", "{\"a\": 1]", "{\"a: 1}", "[]"})
    EXPECT_FALSE(scan_object(text, 0, e).has_value()) << text;
}

TEST(JsonScan, SkipsValues) {
  ScanError e;
  EXPECT_EQ(skip_value("12, 3", 0, e), 2u);
  EXPECT_EQ(skip_value("\"a\\\"b\" ", 0, e), 6u);
  EXPECT_EQ(skip_value("[1, \"]\"] x", 0, e), 8u);
  EXPECT_EQ(skip_value("NaN}", 0, e), 3u);
  EXPECT_FALSE(skip_value("\"abc", 0, e).has_value());
  EXPECT_FALSE(skip_value("\"abc\\", 0, e).has_value());
  EXPECT_FALSE(skip_value("", 0, e).has_value());
  EXPECT_FALSE(skip_value(",", 0, e).has_value());
}

/// One byte at a time, for comparison.
Strings slow_elements(const std::string &text) {
  Strings out;
  std::string current;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      current += c;
      if (c == '\\')
        current += text[++i];
      else if (c == '"')
        in_string = false;
      continue;
    }
    in_string = c == '"';
    if (c == '[' || c == '{')
      if (++depth == 1)
        continue;
    if (c == ']' || c == '}')
      if (--depth == 0)
        break;
    if (c == ',' && depth == 1) {
      out.push_back(current);
      current.clear();
      continue;
    }
    current += c;
  }
  out.push_back(current);
  return out;
}

// Block borders fall everywhere: strings, runs of backslashes and brackets of random lengths.
TEST(JsonScan, AgreesWithTheObviousWay) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text = "[";
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      if (i)
        text += ',';
      const int depth = static_cast<int>(random() % 4);
      text += std::string(static_cast<size_t>(depth), '[');
      text += '"';
      for (size_t k = random() % 70; k > 0; --k) {
        const char *pieces[] = {"x", "\\\\", "\\\"", ",", "]", "[", "}", "\\n"};
        text += pieces[random() % 8];
      }
      text += '"';
      for (int k = 0; k < depth; ++k)
        text += random() % 2 ? ",1]" : "]";
    }
    text += "]";
    const std::string padded = std::string(random() % 64, ' ') + text + ",[[\"";
    ScanError e;
    const auto found = scan_array(padded, padded.find('['), e);
    ASSERT_TRUE(found.has_value()) << text;
    Strings got;
    for (const Extent &x : *found)
      got.push_back(padded.substr(x.offset, x.size));
    ASSERT_EQ(got, slow_elements(text)) << text;
  }
}

TEST(JsonScan, Unescape) {
  EXPECT_EQ(unescape(R"(a\n\t\"\\\/\b\f\r)"), "a\n\t\"\\/\b\f\r");
  EXPECT_EQ(unescape(R"(\u0041\u00e9\u20ac)"), "A\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(unescape(R"(\ud83d\ude00)"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(unescape(R"(\ud83d)"), "\xEF\xBF\xBD");
  EXPECT_EQ(unescape(R"(\ude00x)"), "\xEF\xBF\xBDx");
  for (const char *bad : {"\\", "\\x", "\\u12", "\\u12g4"})
    EXPECT_FALSE(unescape(bad).has_value()) << bad;
}

} // namespace
} // namespace chute::pt2

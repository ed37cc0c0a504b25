#include "support/diag.h"

#include <gtest/gtest.h>

namespace chute {
namespace {

TEST(Diag, TextHasEveryPartThatIsKnown) {
  Diagnostic d;
  d.code = "x.y";
  d.message = "no";
  EXPECT_EQ(to_text(d), "error[x.y]: no");
  d.object = "%a op";
  d.source_line = "m.py:1";
  EXPECT_EQ(to_text(d), "error[x.y] %a op (m.py:1): no");
  d.module_path = "layers.0";
  d.hint = "try";
  d.severity = Severity::Warning;
  EXPECT_EQ(to_text(d), "warning[x.y] %a op (layers.0, m.py:1): no\n  hint: try");
}

TEST(Diag, JsonIsOneLineAndValidUtf8) {
  Diagnostic d;
  d.message = "a\n\"b\"\\\x01\xff\xed\xa0\x80\xc3\xa9";
  const std::string json = to_json(d);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_NE(
      json.find("\"message\":\"a\\n\\\"b\\\"\\\\\\u0001\\ufffd\\ufffd\\ufffd\\ufffd\xc3\xa9\""),
      std::string::npos)
      << json;
}

TEST(Diag, CountsErrorsAndKeepsTheFirstKind) {
  Diagnostics all;
  EXPECT_EQ(all.first_error_kind(), ErrorKind::None);
  Diagnostic warning;
  warning.severity = Severity::Warning;
  warning.kind = ErrorKind::Usage;
  all.add(warning);
  EXPECT_FALSE(all.has_errors());
  Diagnostic error;
  error.kind = ErrorKind::Unsupported;
  all.add(error);
  error.kind = ErrorKind::BadInput;
  all.add(error);
  EXPECT_EQ(all.error_count(), 2u);
  EXPECT_EQ(all.first_error_kind(), ErrorKind::Unsupported);
  all.clear();
  EXPECT_FALSE(all.has_errors());
}

} // namespace
} // namespace chute

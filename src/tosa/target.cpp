#include "tosa/target.h"

#include <algorithm>

namespace chute::tosa {

namespace {

struct Name {
  std::string_view name;
  feature::Set bit;
};
constexpr Name kNames[] = {
    {"INT", feature::kInt},
    {"FP", feature::kFp},
    {"INT16", feature::kInt16},
    {"INT4", feature::kInt4},
    {"BF16", feature::kBf16},
    {"FP8E4M3", feature::kFp8e4m3},
    {"FP8E5M2", feature::kFp8e5m2},
    {"FFT", feature::kFft},
    {"VARIABLE", feature::kVariable},
    {"CONTROLFLOW", feature::kControlFlow},
    {"DYNAMIC", feature::kDynamic},
    {"DOUBLEROUND", feature::kDoubleRound},
    {"INEXACTROUND", feature::kInexactRound},
    {"MXFP", feature::kMxfp},
    {"INT64", feature::kInt64},
    {"SHAPE", feature::kShape},
    {"MXFP_CONV", feature::kMxfpConv},
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char &c : out)
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

} // namespace

std::string feature_names(feature::Set set) {
  std::string out;
  for (const Name &n : kNames)
    if (set & n.bit)
      out += (out.empty() ? "" : ", ") + std::string(n.name);
  return out;
}

Result<Target> parse_target(std::string_view text) {
  const auto bad = [&](std::string why) {
    return fail(ErrorKind::Usage, "tosa.target", std::move(why), std::string(text),
                "like tosa-1.0+fp+bf16 or tosa-1.0+int+int16");
  };
  const std::string given = upper(text);
  std::string_view rest = given;
  if (!rest.starts_with("TOSA-1."))
    return bad("is no TOSA target");
  rest.remove_prefix(7);
  Target target;
  if (rest.empty() || (rest[0] != '0' && rest[0] != '1'))
    return bad("names a version other than 1.0 and 1.1");
  target.minor = static_cast<u8>(rest[0] - '0');
  rest.remove_prefix(1);
  if (rest.starts_with(".0"))
    rest.remove_prefix(2);
  feature::Set named = 0;
  while (!rest.empty()) {
    if (rest[0] != '+')
      return bad("has text after the version that is no +name");
    rest.remove_prefix(1);
    std::string_view word = rest.substr(0, rest.find('+'));
    rest.remove_prefix(word.size());
    if (word == "8K" || word == "NOLEVEL") {
      target.level_8k = word == "8K";
      continue;
    }
    if (word == "CF")
      word = "CONTROLFLOW";
    if (word == "VAR")
      word = "VARIABLE";
    const auto at = std::ranges::find(kNames, word, &Name::name);
    if (at == std::end(kNames))
      return bad("names '" + std::string(word) + "', which is neither a profile nor an extension");
    named |= at->bit;
  }
  if (named)
    target.features = named;
  else if (target.minor == 0)
    target.features &= ~(feature::kMxfp | feature::kMxfpConv | feature::kInt64 | feature::kShape);
  return target;
}

} // namespace chute::tosa

#include "pt2/size_hints.h"

#include "pt2/json_scan.h"

#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>

namespace chute::pt2 {

namespace {

/// The name in "Symbol('s77', positive=True, integer=True)"; empty for other expressions.
std::string_view symbol_in(std::string_view srepr) {
  constexpr std::string_view kBegin = "\"Symbol('";
  if (!srepr.starts_with(kBegin))
    return {};
  const std::string_view rest = srepr.substr(kBegin.size());
  const size_t end = rest.find('\'');
  return end == rest.npos || rest.find('(') != rest.npos ? std::string_view() : rest.substr(0, end);
}

} // namespace

std::vector<std::pair<std::string, i64>> size_hints(std::string_view json) {
  constexpr std::string_view kKey = "\"expr_str\"";
  std::vector<std::pair<std::string, i64>> out;
  boost::unordered_flat_set<std::string_view> seen;
  const auto slice = [&](Extent x) { return json.substr(x.offset, x.size); };
  for (size_t at = json.find(kKey); at != json.npos; at = json.find(kKey, at + kKey.size())) {
    const size_t open = at == 0 ? json.npos : json.find_last_not_of(" \t\r\n", at - 1);
    ScanError error;
    const auto members =
        open != json.npos && json[open] == '{' ? scan_object(json, open, error) : std::nullopt;
    if (!members)
      continue;
    std::string_view name;
    for (const Member &m : *members) {
      if (m.key == "expr_str")
        name = symbol_in(slice(m.value));
      if (m.key != "hint" || name.empty() || seen.contains(name) || json[m.value.offset] != '{')
        continue;
      const auto hint = scan_object(json, m.value.offset, error);
      if (!hint || hint->size() != 1 || hint->front().key != "as_int")
        continue;
      const std::string_view digits = slice(hint->front().value);
      i64 value = 0;
      const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (bad != std::errc() || end != digits.data() + digits.size())
        continue;
      seen.insert(name);
      out.emplace_back(name, value);
    }
  }
  return out;
}

} // namespace chute::pt2

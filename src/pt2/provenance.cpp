#include "pt2/provenance.h"

#include "pt2/json_scan.h"

namespace chute::pt2 {

namespace {

/// The inside of the string value of `key`, unescaped; empty when absent or malformed.
std::string string_member(std::string_view document, const std::vector<Member> &members,
                          std::string_view key) {
  for (const Member &m : members) {
    if (m.key != key)
      continue;
    std::string_view s = document.substr(m.value.offset, m.value.size);
    if (s.size() < 2 || s.front() != '"' || s.back() != '"')
      return {};
    return unescape(s.substr(1, s.size() - 2)).value_or(std::string());
  }
  return {};
}

void read_module_stack(std::string_view stack, ir::Provenance &out) {
  const size_t entry = stack.rfind(';');
  if (entry != stack.npos)
    stack = stack.substr(entry + 1);
  const size_t first = stack.find(','), last = stack.rfind(',');
  if (first == stack.npos || first == last)
    return;
  out.module_path = stack.substr(first + 1, last - first - 1);
  out.module_type = stack.substr(last + 1);
}

bool is_library(std::string_view file) {
  return file.find("site-packages/") != file.npos || file.find("/torch/nn/") != file.npos ||
         file.starts_with("torch/");
}

/// Frames look like `File "path", line 12, in forward`.
void read_stack_trace(std::string_view trace, ir::Provenance &out) {
  std::string any;
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  for (size_t at = trace.rfind(kFile); at != trace.npos;
       at = at ? trace.rfind(kFile, at - 1) : trace.npos) {
    const size_t begin = at + kFile.size();
    const size_t end = trace.find(kLine, begin);
    if (end == trace.npos)
      continue;
    const std::string_view file = trace.substr(begin, end - begin);
    if (file.find('\n') != file.npos)
      continue;
    size_t stop = end + kLine.size();
    while (stop < trace.size() && trace[stop] >= '0' && trace[stop] <= '9')
      ++stop;
    std::string line(file);
    line += ':';
    line += trace.substr(end + kLine.size(), stop - end - kLine.size());
    if (!is_library(file)) {
      out.source_line = std::move(line);
      return;
    }
    if (any.empty())
      any = std::move(line);
  }
  out.source_line = std::move(any);
}

} // namespace

void NodeMetadata::resolve(u64 key, ir::Provenance &out) const {
  ScanError error;
  const auto node = scan_object(document_, key, error);
  if (!node)
    return;
  for (const Member &m : *node) {
    if (m.key != "metadata")
      continue;
    const auto metadata = scan_object(document_, m.value.offset, error);
    if (!metadata)
      return;
    read_module_stack(string_member(document_, *metadata, "nn_module_stack"), out);
    read_stack_trace(string_member(document_, *metadata, "stack_trace"), out);
    return;
  }
}

} // namespace chute::pt2

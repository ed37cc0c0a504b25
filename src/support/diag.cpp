#include "support/diag.h"

namespace chute {

namespace {

std::string_view severity_name(Severity s) {
  switch (s) {
  case Severity::Note: return "note";
  case Severity::Warning: return "warning";
  case Severity::Error: return "error";
  }
  return "error";
}

/// Length of the valid UTF-8 sequence at `text[i]`, or 0.
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<u8>(text[k]); };
  const u8 lead = byte(i);
  if (lead < 0x80)
    return 1;
  size_t n = 0;
  u32 code = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    n = 2;
    code = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    n = 3;
    code = lead & 0x0F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    n = 4;
    code = lead & 0x07;
  }
  if (n == 0 || i + n > text.size())
    return 0;
  for (size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80)
      return 0;
    code = (code << 6) | (byte(i + k) & 0x3F);
  }
  const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : n;
}

} // namespace

ErrorKind Diagnostics::first_error_kind() const {
  for (const Diagnostic &d : all_)
    if (d.severity == Severity::Error)
      return d.kind;
  return ErrorKind::None;
}

std::string json_quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (c == '\n') {
      out += "\\n";
      ++i;
    } else if (static_cast<u8>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<u8>(c) >> 4];
      out += kHex[static_cast<u8>(c) & 15];
      ++i;
    } else if (const size_t n = utf8_length(text, i)) {
      out.append(text, i, n);
      i += n;
    } else {
      out += "\\ufffd";
      ++i;
    }
  }
  return out += '"';
}

std::string to_text(const Diagnostic &d) {
  std::string out(severity_name(d.severity));
  out += "[" + d.code + "]";
  if (!d.file.empty())
    out += " " + d.file + (d.object.empty() ? "" : ":");
  if (!d.object.empty())
    out += " " + d.object;
  if (!d.module_path.empty() || !d.source_line.empty()) {
    out += " (" + d.module_path;
    if (!d.module_path.empty() && !d.source_line.empty())
      out += ", ";
    out += d.source_line + ")";
  }
  out += ": " + d.message;
  if (!d.hint.empty())
    out += "\n  hint: " + d.hint;
  return out;
}

std::string to_json(const Diagnostic &d) {
  std::string out = "{\"severity\":" + json_quote(severity_name(d.severity));
  const auto field = [&](const char *name, const std::string &value) {
    out += ",\"" + std::string(name) + "\":" + json_quote(value);
  };
  field("code", d.code);
  field("message", d.message);
  field("file", d.file);
  field("object", d.object);
  field("module_path", d.module_path);
  field("source_line", d.source_line);
  field("hint", d.hint);
  return out += "}";
}

} // namespace chute

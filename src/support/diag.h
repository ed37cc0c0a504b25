#pragma once

#include "support/ints.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chute {

enum class Severity : u8 { Note, Warning, Error };

/// What went wrong, as far as a caller of the command line has to tell cases apart.
/// The command line's exit codes are these values (documented in README.md).
enum class ErrorKind : u8 {
  None = 0,
  Failure = 1,     ///< the work itself failed (verification finding, mismatch, internal check)
  Usage = 2,       ///< wrong arguments
  Unsupported = 3, ///< the model holds something chute can not lower
  BadInput = 4,    ///< an input file is malformed or unreadable
  Output = 5,      ///< an output file could not be written
};

/// One finding. `code` is stable ("pt2.zip.truncated", "circle.tensor.buffer_range") and listed in
/// docs/diagnostics.md; `object` is the path of the thing inside its file or graph
/// ("models/model.json@1234", "subgraphs[0].operators[3]", "%conv2d_1 aten.conv2d.default").
struct Diagnostic {
  Severity severity = Severity::Error;
  ErrorKind kind = ErrorKind::Failure;
  std::string code;
  std::string message;
  std::string file; ///< the input that it is about; empty when it is about none
  std::string object;
  std::string module_path; ///< e.g. "layers.3.mlp.up_proj"; empty when unknown
  std::string source_line; ///< e.g. "model.py:41"; empty when unknown
  std::string hint;        ///< the nearest way out; empty when there is none
};

/// The text form that a terminal shows: `error[code] file: object (module, source): message` and a
/// hint line.
std::string to_text(const Diagnostic &d);
/// One JSON object on one line.
std::string to_json(const Diagnostic &d);

/// Collects findings so that several problems are reported in one run. Not thread-safe.
class Diagnostics {
public:
  void add(Diagnostic d) {
    const bool about_input = d.kind != ErrorKind::Usage && d.kind != ErrorKind::Output;
    if (d.file.empty() && about_input && d.object != file_)
      d.file = file_;
    errors_ += d.severity == Severity::Error;
    all_.push_back(std::move(d));
  }
  /// The input that findings added from now on are about, where they do not say it themselves.
  void set_file(std::string path) { file_ = std::move(path); }
  bool has_errors() const { return errors_ != 0; }
  size_t error_count() const { return errors_; }
  const std::vector<Diagnostic> &all() const { return all_; }
  /// The kind of the first error; None when there is no error.
  ErrorKind first_error_kind() const;
  void clear() {
    all_.clear();
    errors_ = 0;
  }

private:
  std::string file_;
  std::vector<Diagnostic> all_;
  size_t errors_ = 0;
};

/// `text` as a JSON string literal with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

} // namespace chute

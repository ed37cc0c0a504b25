#pragma once

#include "support/diag.h"

#include <tl/expected.hpp>

namespace chute {

/// A value or the one Diagnostic that explains why there is none. Code that can report several
/// problems takes a Diagnostics& instead.
template <class T>
using Result = tl::expected<T, Diagnostic>;
using Status = Result<void>;

/// Shorthand for `return fail(ErrorKind::BadInput, "pt2.zip.truncated", "…", "where", "hint");`
inline tl::unexpected<Diagnostic> fail(ErrorKind kind, std::string code, std::string message,
                                       std::string object = {}, std::string hint = {}) {
  Diagnostic d;
  d.kind = kind;
  d.code = std::move(code);
  d.message = std::move(message);
  d.object = std::move(object);
  d.hint = std::move(hint);
  return tl::unexpected<Diagnostic>(std::move(d));
}

} // namespace chute

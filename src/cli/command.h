#pragma once

#include "cli/args.h"
#include "support/diag.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace chute::cli {

/// Options that every verb has, and the way to report.
struct Session {
  bool json = false;  ///< diagnostics and results as JSON
  bool quiet = false; ///< no progress
  u64 threads = 0;    ///< 0: all cores
  std::string trace;  ///< write a Chrome trace here

  Diagnostics diagnostics;

  /// Prints every collected diagnostic to standard error (text, or one JSON object per line) and
  /// returns the exit code that belongs to the first error; 0 when there is none.
  int finish();
  int fail(Diagnostic d) {
    diagnostics.add(std::move(d));
    return finish();
  }
};

/// One verb: `chute NAME …`. Each lives in a file of its name and is listed in verbs.def.
class Command {
public:
  virtual ~Command() = default;
  virtual std::string_view summary() const = 0;  ///< one line for `chute --help`
  virtual std::string_view examples() const = 0; ///< shown below the verb's own help
  virtual void declare(Args &args) = 0;
  /// Returns the exit code (ErrorKind values).
  virtual int run(Session &session) = 0;
};

#define VERB(name) std::unique_ptr<Command> make_##name();
#include "cli/verbs.def"
#undef VERB

/// Registers every dialect and pass that chute has.
void register_everything();

} // namespace chute::cli

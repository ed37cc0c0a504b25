#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <string>

namespace chute::cli {

/// How a command of the shell ended.
struct ChildEnd {
  bool timed_out = false;
  bool signalled = false;
  int code = 0; ///< exit code, or the signal's number
};

/// Runs `command` with /bin/sh in a process group of its own, its standard streams at /dev/null
/// (with `show`: standard error stays), and kills the group when `seconds` are over. Error:
/// `cli.child` when no process can be started.
Result<ChildEnd> run_command(const std::string &command, double seconds, bool show);

} // namespace chute::cli

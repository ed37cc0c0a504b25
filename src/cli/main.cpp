#include "cli/command.h"

#include <cstdio>

namespace chute::cli {

int dispatch(int argc, char **argv); // args.cpp

int Session::finish() {
  for (const Diagnostic &d : diagnostics.all()) {
    const std::string line = json ? to_json(d) : to_text(d);
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  const int code = static_cast<int>(diagnostics.first_error_kind());
  diagnostics.clear();
  return code;
}

} // namespace chute::cli

int main(int argc, char **argv) {
  chute::cli::register_everything();
  return chute::cli::dispatch(argc, argv);
}

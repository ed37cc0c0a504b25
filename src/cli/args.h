#pragma once

#include "support/ints.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace chute::cli {

/// Declares the options of one verb. A thin front of CLI11, whose header costs twelve seconds to
/// compile, so that only args.cpp includes it. Targets must outlive the parse.
class Args {
public:
  explicit Args(CLI::App *app) : app_(app) {}

  void positional(const char *name, std::string &target, const char *help, bool required = true);
  void positional(const char *name, std::vector<std::string> &target, const char *help,
                  bool required = true);
  /// `names` as in "-o,--output".
  void option(const char *names, std::string &target, const char *help, bool required = false);
  void option(const char *names, u64 &target, const char *help);
  void option(const char *names, std::vector<std::string> &target, const char *help);
  /// One of `choices`; anything else is a usage error.
  void choice(const char *names, std::string &target, const std::vector<std::string> &choices,
              const char *help);
  void flag(const char *names, bool &target, const char *help);

private:
  CLI::App *app_;
};

} // namespace chute::cli

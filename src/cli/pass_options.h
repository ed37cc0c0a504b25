#pragma once

#include "cli/args.h"
#include "cli/command.h"
#include "pass/pass.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace chute::cli {

/// Options of every verb that runs passes: --print-after, --verify-each, --stats, --stop-after,
/// --set, --config.
class PassOptions {
public:
  void declare(Args &args);
  /// Fills `out`; a malformed --set or an unknown pass in --print-after is a usage error in
  /// `diagnostics` and returns false.
  bool fill(pass::PipelineOptions &out, Diagnostics &diagnostics) const;
  bool wants_stats() const { return stats_; }
  /// The table of --stats (or its JSON), for standard error.
  static std::string stats_text(const std::vector<pass::PassRecord> &records);
  static std::string stats_json(const std::vector<pass::PassRecord> &records);

private:
  using AssignFn =
      std::function<void(std::string_view name, std::string_view value, const std::string &where)>;
  using UsageFn = std::function<void(std::string code, std::string message, std::string hint)>;
  void read_config(const AssignFn &assign, const UsageFn &usage) const;

  std::string config_;
  std::vector<std::string> print_after_;
  std::vector<std::string> set_;
  bool verify_each_ = false;
  bool stats_ = false;
  u64 stop_after_ = ~u64{0};
};

} // namespace chute::cli

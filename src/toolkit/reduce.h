#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace chute::toolkit {

struct ReduceOptions {
  /// Whether a candidate still shows what is looked for. Called one after the other.
  std::function<Result<bool>(std::span<const std::byte>)> test;
  /// Called after every candidate that was taken over: its bytes and what it holds. May be empty.
  std::function<Status(std::span<const std::byte>, const struct ReduceSize &)> on_smaller;
  u64 most_tests = 10'000;
  bool text = false; ///< candidates are text IR instead of Circle files
};

/// What is made smaller, the first field first.
struct ReduceSize {
  u64 operators = 0;
  u64 outputs = 0;
  u64 constant_bytes = 0; ///< of constants that are not all zeros
  u64 elements = 0;       ///< of inputs and results
  u64 bytes = 0;          ///< of the file
  friend auto operator<=>(const ReduceSize &, const ReduceSize &) = default;
};

struct ReduceReport {
  ReduceSize before;
  ReduceSize after;
  u64 tests = 0;
  u64 accepted = 0;
  bool exhausted = false; ///< most_tests ended the search
  std::vector<std::byte> bytes;
};

/// The smallest program, as far as the search goes, for which `test` still says yes (delta
/// debugging, Zeller and Hildebrandt 2002): subsets of outputs, ranges of operators cut out (what
/// they gave becomes inputs), single operators replaced by an operand of the same type, constants
/// set to zero or made inputs, dimensions made smaller where the operators still fit, metadata
/// dropped. Rounds until one changes nothing. Deterministic if
/// the test is. Every candidate is a valid file; one that cannot be written is passed over.
///
/// Errors: those of reading `bytes`; `toolkit.reduce.test` (kind Failure) when the test says no to
/// the program as it came; errors of the test itself.
Result<ReduceReport> reduce(std::span<const std::byte> bytes, const ReduceOptions &options);

} // namespace chute::toolkit

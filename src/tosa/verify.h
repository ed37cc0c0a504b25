#pragma once

#include "ir/graph.h"
#include "support/diag.h"
#include "tosa/target.h"

#include <functional>
#include <span>

namespace chute::tosa {

/// The requirement of a target that an operator does not meet.
struct Violation {
  std::string code;   ///< stable: `tosa.profile`, `tosa.version`, `tosa.level`, `tosa.types`
  std::string clause; ///< what fails: "needs one of INT", "MAX_KERNEL: kernel 9000 is above 8192"
};

/// What keeps one operator off the target; nothing when it is accepted. Operators that are not
/// TOSA's (core.constant, core.return) are accepted.
std::optional<Violation> check_operator(const ir::Op &op, const Target &target);

/// Checks every operator of a graph against the target: version, profiles and extensions by element
/// types, level limits. One error per operator and clause, the first of each kind of operator named
/// with its place, the rest counted. `hint` says what to do about a missing profile or extension.
void validate(const ir::Graph &graph, const Target &target, Diagnostics &diagnostics,
              ErrorKind kind = ErrorKind::Failure,
              std::string_view hint = "name a target that has it");

/// Checks a TOSA file: structure (see reader.h), every operator's result types against its operands
/// and attributes (`tosa.operator.contract`), and the target. Linear in the file's size.
void verify(ir::Context &ctx, std::span<const std::byte> bytes, const Target &target,
            Diagnostics &diagnostics);

} // namespace chute::tosa

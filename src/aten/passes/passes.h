#pragma once

#include "pass/pass.h"

#include <string>
#include <vector>

/// The passes that take an exported program to chute's core ATen (passes/core_ops.def).
namespace chute::aten {

/// Adds this folder's passes to the registry; idempotent.
void register_aten_passes();

/// functionalize, normalize, decompose: in this order. Everything after them may assume values
/// without aliasing, explicit promotion and (once `check-core` has passed) core operators only.
std::vector<std::string> core_pipeline();

void add_normalize_rules(pass::PatternSet &set);

/// The rules of `decompose`, those of `normalize` among them.
const pass::PatternSet &decompose_rules();

/// What becomes of each operator of the table.
struct OperatorFacts {
  ir::OpCode opcode{};
  /// "core": legalizations and kernels handle it; "rule": it is reduced to others; "in place": its
  /// functional form is used; "dropped": it has no meaning for inference; "quantization",
  /// "control flow"; "none": a program that holds it is refused.
  std::string_view fate;
  std::string detail;      ///< the rule's name, or the functional form
  std::string_view limits; ///< what its lowering does not take; empty: as PyTorch
};
/// One entry per row of the ATen table, by name.
std::vector<OperatorFacts> operator_facts();

/// Whether an operator may remain after `decompose`: core, quantization (another stage's), or a
/// higher-order operator with regions.
bool is_core(const ir::Op &op);
bool is_core(ir::OpCode opcode);

} // namespace chute::aten

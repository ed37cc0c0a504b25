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

/// Whether an operator may remain after `decompose`: core, quantization (another stage's), or a
/// higher-order operator with regions.
bool is_core(const ir::Op &op);

} // namespace chute::aten

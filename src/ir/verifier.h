#pragma once

#include "ir/graph.h"
#include "support/diag.h"

namespace chute::ir {

struct VerifyOptions {
  /// Also compare declared result types with inferred ones (element type, rank, static dimensions;
  /// quantization is the passes' business). Operators whose types only the importer knows are
  /// skipped.
  bool check_inference = false;
  /// Findings after which the walk stops: one fault often shows in every operator behind it.
  size_t max_findings = 100;
};

/// Checks the graph's invariants in one linear, iterative walk and reports every violation with a
/// stable code (docs/diagnostics.md):
///
///     ir.op.unknown          opcode of no table            ir.op.link          broken operator
///     list ir.use.order           used before its definition    ir.use.link         broken list of
///     uses ir.operand.count / .segments / .missing              against the table ir.attr.count /
///     .type                                against the table ir.attr.operand / .region index
///     beyond the operator's own ir.result.count        against the table ir.type.missing / .dim /
///     .quant                      a type that means nothing ir.constant.owner / .range / .type
///     constants ir.terminator          a region does not end in its one terminator
///     ir.region.unexpected / .parent                       regions
///     ir.interface.input / .output / .target               the graph's signature
///     ir.infer.mismatch / .error                           with check_inference
///
/// and what OpDef::verify of an operator reports.
void verify(const Graph &graph, Diagnostics &diagnostics, const VerifyOptions &options = {});

} // namespace chute::ir

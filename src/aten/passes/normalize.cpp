// normalize: one spelling for each operation.
//
// Aliases and copies become the operator that they mean, no-ops, checks and conversions that change
// nothing vanish, Python numbers become rank-0 constants, type promotion becomes casts, alpha
// becomes a multiplication, dimensions count from the front. Result types are untouched.
//
// Runs after `functionalize`: here a clone is its operand, which is wrong while something may write
// to one of the two.
#include "aten/passes/passes.h"
#include "aten/passes/rules.h"
#include "ir/walk.h"
#include "pass/pass.h"

namespace chute::aten {

namespace {

bool is_functional(pass::PassContext &ctx) {
  const auto writes = [](ir::OpCode code) {
    const ir::trait::Set traits = ir::Registry::facts(code).traits;
    return (traits & ir::trait::kInPlace) && !(traits & ir::trait::kNoOp);
  };
  if (!ctx.graph.has_any(writes))
    return true;
  const ir::Op *in_place = nullptr;
  ir::walk(ctx.graph, [&](ir::Op &op) {
    if (!in_place && writes(op.opcode()))
      in_place = &op;
  });
  if (in_place)
    ctx.diagnostics.add(pass::at_op(
        ctx.graph, *in_place, ErrorKind::Failure, "aten.normalize.in_place",
        "the program still holds operators that write in place", "run functionalize first"));
  return !in_place;
}

} // namespace

void add_normalize_rules(pass::PatternSet &set) {
  add_rename_rules(set);
  add_no_op_rules(set);
  add_scalar_rules(set);
  add_promotion_rules(set);
  add_dim_rules(set);
}

void normalize_pass(pass::PassContext &ctx) {
  static const pass::PatternSet rules = [] {
    pass::PatternSet set;
    add_normalize_rules(set);
    return set;
  }();
  if (is_functional(ctx))
    ctx.run(rules);
}

} // namespace chute::aten

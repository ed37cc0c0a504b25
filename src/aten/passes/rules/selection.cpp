#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

// Positions of what is true: a tensor of indices per dimension are the columns of nonzero.
namespace chute::aten {

namespace {

/// where(condition) and nonzero_numpy. The number of positions, known at run time, is the recorded
/// one; a single number counts as a vector of one.
bool columns_of_nonzero(ir::Op &op, pass::Rewriter &rw) {
  V x = op.operand(0);
  ir::Builder builder = rw.before(op);
  ir::Context &ctx = rw.context();
  if (x->type().rank() == 0) {
    const SymInt one[] = {1};
    x = builder.create(op::view, {x}, {{"size", ctx.ints_attr(one)}});
  }
  const auto rank = static_cast<u32>(x->type().rank());
  if (op.num_results() != rank)
    return false;
  const SymInt found = op.result(0)->type().dim(0);
  const SymInt shape[] = {found, SymInt(rank)};
  const ir::Type type = ctx.tensor_type(ElementType::I64, shape);
  V operands[] = {x};
  V at = builder.create_typed(op::nonzero, operands, {}, std::span(&type, 1))->result();
  Values columns;
  for (u32 d = 0; d < rank; ++d)
    columns.push_back(builder.create(op::select_int, {at},
                                     {{"dim", Attr::of_int(1)}, {"index", Attr::of_int(i64{d})}}));
  rw.replace(op, columns);
  return true;
}

} // namespace

void add_selection_rules(pass::PatternSet &set) {
  set.add("columns-of-nonzero", {op::where, op::nonzero_numpy}, columns_of_nonzero);
}

} // namespace chute::aten

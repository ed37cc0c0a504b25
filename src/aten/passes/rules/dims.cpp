#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

// Negative dimensions count from the front: of every operator of the table whose `dim` or `dims`
// are positions among the first operand's dimensions.
namespace chute::aten {

namespace {

constexpr std::string_view kNames[] = {"dim", "dims"};

/// Rows whose `dim` means something else: a position in the result, a dimension after broadcasting,
/// -1 for "all", numbers of repetitions.
constexpr ir::OpCode kOther[] = {
    op::stack,
    op::unsqueeze,
    op::unsqueeze_,
    op::unsqueeze_copy,
    op::cosine_similarity,
    op::u_weight_norm,
    op::u_weight_norm_interface,
    op::tile,
};

bool names_operand_dims(const ir::OpDef &def) {
  if (!def.name.starts_with("aten.") || def.operands.empty() ||
      std::ranges::find(kOther, def.opcode) != std::end(kOther))
    return false;
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    const int slot = def.attr_index(name);
    if (slot < 0)
      return false;
    const ir::AttrType type = def.attrs[static_cast<size_t>(slot)].type;
    return type == ir::AttrType::Int || type == ir::AttrType::Ints;
  });
}

/// Of the first operand in the table's sense. Tensors to concatenate have one rank, but for the
/// empty ones of shape [0].
int rank_of(const ir::Op &op) {
  const ir::Op::Segment first = op.segment(0);
  int rank = 0;
  for (u32 i = first.first; i < first.first + first.count; ++i)
    if (const ir::Value *v = op.operand(i); v && v->type().is_tensor())
      rank = std::max(rank, v->type().rank());
  return rank;
}

/// Rewrites the attribute in place: neither operands nor types change.
bool wrap_dims(ir::Op &op, pass::Rewriter &rw) {
  const int rank = rank_of(op);
  bool changed = false;
  for (const std::string_view name : kNames) {
    const int slot = op.def().attr_index(name);
    if (slot < 0)
      continue;
    const Attr a = op.attr(static_cast<u32>(slot));
    const auto wrap = [&](SymInt d) {
      return d.is_static() && d.value() < 0 ? SymInt(d.value() + std::max(rank, 1)) : d;
    };
    Attr now = a;
    if (a.kind() == ir::AttrKind::Int) {
      now = Attr::of_int(wrap(a.as_int()));
    } else if (a.kind() == ir::AttrKind::Ints) {
      Shape dims;
      for (SymInt d : a.as_ints())
        dims.push_back(wrap(d));
      now = rw.context().ints_attr(dims);
    }
    if (now == a)
      continue;
    rw.graph().set_attr(&op, static_cast<u32>(slot), now);
    changed = true;
  }
  return changed;
}

} // namespace

void add_dim_rules(pass::PatternSet &set) {
  pass::Pattern wrap{"wrap-dims", {}, wrap_dims};
  for (const ir::OpDef *def : ir::Registry::global().all())
    if (names_operand_dims(*def))
      wrap.roots.push_back(def->opcode);
  set.add(std::move(wrap));
}

} // namespace chute::aten

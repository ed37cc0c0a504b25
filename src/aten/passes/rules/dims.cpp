#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

// Negative dimensions of operators that stay in the core count from the front.
namespace chute::aten {

namespace {

/// Rewrites the attribute in place: neither operands nor types change.
bool wrap_dims(ir::Op &op, pass::Rewriter &rw) {
  const int rank = op.num_operands() && op.operand(0) ? op.operand(0)->type().rank() : 0;
  bool changed = false;
  for (const std::string_view name : {"dim", "dims"}) {
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
  set.add("wrap-dims",
          {op::u_softmax,
           op::u_log_softmax,
           op::cat,
           op::cumsum,
           op::cumprod,
           op::topk,
           op::sort,
           op::sort_stable,
           op::gather,
           op::index_select,
           op::scatter_src,
           op::scatter_add,
           op::flip,
           op::split_with_sizes,
           op::argmax,
           op::argmin,
           op::permute,
           op::split_Tensor,
           op::chunk,
           op::select_int,
           op::slice_Tensor,
           op::narrow,
           op::unbind_int,
           op::squeeze_dim,
           op::squeeze_dims,
           op::softmax_int,
           op::log_softmax_int,
           op::u_safe_softmax,
           op::glu,
           op::scatter_value,
           op::slice_scatter,
           op::select_scatter,
           op::index_add,
           op::index_copy,
           op::amax,
           op::amin,
           op::sum_dim_IntList,
           op::mean_dim,
           op::any_dims,
           op::all_dims,
           op::any_dim,
           op::all_dim,
           op::max_dim,
           op::min_dim,
           op::prod_dim_int},
          wrap_dims);
}

} // namespace chute::aten

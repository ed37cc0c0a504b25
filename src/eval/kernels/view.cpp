// Operators whose result has the operand's bytes in the operand's order: only the shape differs.

#include "eval/kernels/families.h"

namespace chute::eval {

namespace {

Status same_bytes(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(ctx.type().known(), "the result's shape is not known");
  EVAL_REQUIRE(num_elements(ctx.type().shape) == x.num_elements(),
               "the result has another number of elements");
  ctx.set(0, x.reshaped(ctx.type().shape));
  return {};
}

/// Bytes read as another element type; the last dim scales with the element's size.
Status k_reinterpret(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const ResultType &t = ctx.type();
  const auto item = static_cast<size_t>(ir::element_bytes(t.element));
  EVAL_REQUIRE(t.known() && static_cast<size_t>(num_elements(t.shape)) * item == x.num_bytes(),
               "the result has another number of bytes");
  ctx.set(0, Tensor::view(t.element, t.shape, x.data(), x.owner()));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle.squeeze", same_bytes},
    {"circle.expand_dims", same_bytes},
    {"aten.view.default", same_bytes},
    {"aten.view_copy.default", same_bytes},
    {"aten._unsafe_view.default", same_bytes},
    {"aten.reshape.default", same_bytes},
    {"aten.reshape_as.default", same_bytes},
    {"aten.ravel.default", same_bytes},
    {"aten.flatten.using_ints", same_bytes},
    {"aten.unflatten.int", same_bytes},
    {"aten.squeeze.default", same_bytes},
    {"aten.squeeze.dim", same_bytes},
    {"aten.squeeze.dims", same_bytes},
    {"aten.squeeze_copy.default", same_bytes},
    {"aten.squeeze_copy.dim", same_bytes},
    {"aten.squeeze_copy.dims", same_bytes},
    {"aten.unsqueeze.default", same_bytes},
    {"aten.unsqueeze_copy.default", same_bytes},
    {"aten.atleast_1d.default", same_bytes},
    {"aten.atleast_2d.default", same_bytes},
    {"aten.atleast_3d.default", same_bytes},
    {"aten.alias.default", same_bytes},
    {"aten.alias_copy.default", same_bytes},
    {"aten.clone.default", same_bytes},
    {"aten.contiguous.default", same_bytes},
    {"aten.data.default", same_bytes},
    {"aten.detach.default", same_bytes},
    {"aten.detach_copy.default", same_bytes},
    {"aten.lift.default", same_bytes},
    {"aten.lift_fresh.default", same_bytes},
    {"aten.lift_fresh_copy.default", same_bytes},
    {"aten.positive.default", same_bytes},
    {"aten.resolve_conj.default", same_bytes},
    {"aten.resolve_neg.default", same_bytes},
    {"aten.view.dtype", k_reinterpret},
    {"circle.bitcast", k_reinterpret},
    {"aten.view_as_complex.default", k_reinterpret},
    {"aten.view_as_real.default", k_reinterpret},
};

} // namespace

std::span<const KernelEntry> view_kernels() { return kEntries; }

} // namespace chute::eval

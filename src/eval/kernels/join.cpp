// Operators that write several pieces into one result: cat, stack, roll, padding, *_scatter of
// slices.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"
#include "ir/element_convert.h"

#include <algorithm>
#include <cstring>

namespace chute::eval {

namespace {

/// Writes `piece` into `out` at index `start` of `dim`.
void place(const Tensor &piece, Tensor &out, int dim, i64 start) {
  const Shape to = dense_strides(out.shape());
  copy_strided(out.item_bytes(), piece.shape(), piece.data(), dense_strides(piece.shape()),
               out.mutable_data() +
                   start * to[static_cast<size_t>(dim)] * static_cast<i64>(out.item_bytes()),
               to);
}

Tensor same_element(const Tensor &t, ElementType element) {
  return computable(t.element()) && computable(element) ? cast(t, element) : t;
}

/// Repeats the element at `value` over all of `out`.
void fill_with(Tensor &out, const std::byte *value) {
  const Shape zeros(static_cast<size_t>(out.rank()), 0);
  copy_strided(out.item_bytes(), out.shape(), value, zeros, out.mutable_data(),
               dense_strides(out.shape()));
}

} // namespace

Status concatenate(KernelContext &ctx, const std::vector<Tensor> &pieces, int dim) {
  EVAL_REQUIRE(!pieces.empty() && dim >= 0 && dim < pieces[0].rank(), "dim out of range");
  Shape shape = pieces[0].shape();
  shape[static_cast<size_t>(dim)] = 0;
  for (const Tensor &p : pieces) {
    Shape other = p.shape();
    EVAL_REQUIRE(other.size() == shape.size() && p.element() == pieces[0].element(),
                 "the pieces have different ranks or element types");
    shape[static_cast<size_t>(dim)] += other[static_cast<size_t>(dim)];
    other[static_cast<size_t>(dim)] = shape[static_cast<size_t>(dim)];
    EVAL_REQUIRE(other == shape, "the pieces' shapes do not fit");
  }
  Tensor out = Tensor::allocate(pieces[0].element(), shape);
  i64 start = 0;
  for (const Tensor &p : pieces) {
    place(p, out, dim, start);
    start += p.dim(dim);
  }
  ctx.set(0, std::move(out));
  return {};
}

Status pad_tensor(KernelContext &ctx, const std::vector<i64> &pad, PadMode mode, double value) {
  const Tensor &x = ctx.in(0);
  const auto rank = static_cast<size_t>(x.rank());
  EVAL_REQUIRE(pad.size() % 2 == 0 && pad.size() / 2 <= rank, "pad has a wrong length");
  Shape shape = x.shape();
  Shape before(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = rank - 1 - i;
    before[d] = pad[2 * i];
    EVAL_REQUIRE(!__builtin_add_overflow(shape[d], pad[2 * i], &shape[d]) &&
                     !__builtin_add_overflow(shape[d], pad[2 * i + 1], &shape[d]) && shape[d] >= 0,
                 "the padded size is out of range");
  }
  if (mode == PadMode::Constant) {
    Tensor out = Tensor::allocate(x.element(), shape);
    std::byte element[16] = {};
    ir::store_element(x.element(), value, element);
    fill_with(out, element);
    // The part of the operand that stays, and where.
    const Shape from = dense_strides(x.shape());
    const Shape to = dense_strides(shape);
    Shape box(rank);
    i64 source = 0;
    i64 target = 0;
    for (size_t d = 0; d < rank; ++d) {
      const i64 first = std::max<i64>(0, -before[d]);
      const i64 place_at = std::max<i64>(0, before[d]);
      box[d] = std::min(x.shape()[d] - first, shape[d] - place_at);
      if (box[d] <= 0) {
        ctx.set(0, std::move(out));
        return {};
      }
      source += first * from[d];
      target += place_at * to[d];
    }
    const auto item = static_cast<i64>(x.item_bytes());
    copy_strided(x.item_bytes(), box, x.data() + source * item, from,
                 out.mutable_data() + target * item, to);
    ctx.set(0, std::move(out));
    return {};
  }
  // One dim at a time: element o comes from the index that the mode gives for o - before.
  Tensor current = x;
  for (size_t d = 0; d < rank; ++d) {
    const i64 n = x.shape()[d];
    if (shape[d] == n && before[d] == 0)
      continue;
    EVAL_REQUIRE(n > 0, "an empty dim can only be padded with a constant");
    Shape grown = current.shape();
    grown[d] = shape[d];
    Tensor out = Tensor::allocate(x.element(), grown);
    const Shape from = dense_strides(current.shape());
    const Shape to = dense_strides(grown);
    const auto item = static_cast<i64>(x.item_bytes());
    Shape slab = grown;
    slab[d] = 1;
    for (i64 o = 0; o < shape[d]; ++o) {
      i64 at = o - before[d];
      if (mode == PadMode::Replicate) {
        at = std::clamp<i64>(at, 0, n - 1);
      } else if (mode == PadMode::Reflect) {
        at = at < 0 ? -at : at;
        at = at >= n ? 2 * (n - 1) - at : at;
      } else if (mode == PadMode::Symmetric) { // the edge itself is repeated
        at = at < 0 ? -at - 1 : at;
        at = at >= n ? 2 * n - 1 - at : at;
      } else {
        at = (at % n + n) % n;
      }
      EVAL_REQUIRE(at >= 0 && at < n, "the padding is larger than the dim");
      copy_strided(x.item_bytes(), slab, current.data() + at * from[d] * item, from,
                   out.mutable_data() + o * to[d] * item, to);
    }
    current = std::move(out);
  }
  ctx.set(0, std::move(current));
  return {};
}

namespace {

Status k_cat(KernelContext &ctx) {
  std::vector<Tensor> pieces;
  for (const Tensor *t : ctx.list(0))
    // torch skips empty vectors in a list of other ranks
    if (t && !(t->rank() == 1 && t->dim(0) == 0))
      pieces.push_back(same_element(*t, ctx.type().element));
  if (pieces.empty()) {
    ctx.set(0, Tensor::allocate(ctx.type().element, {0}));
    return {};
  }
  const int dim = wrap_dim(ctx.integer("dim"), pieces[0].rank());
  return concatenate(ctx, pieces, dim);
}
Status k_stack(KernelContext &ctx) {
  std::vector<Tensor> pieces;
  int dim = -1;
  for (const Tensor *t : ctx.list(0)) {
    dim = wrap_dim(ctx.integer("dim"), t->rank() + 1);
    EVAL_REQUIRE(dim >= 0, "dim out of range");
    Shape shape = t->shape();
    shape.insert(shape.begin() + dim, 1);
    pieces.push_back(same_element(*t, ctx.type().element).reshaped(shape));
  }
  return concatenate(ctx, pieces, dim);
}
/// hstack, vstack, dstack, column_stack: pieces raised to a rank, joined along a dim.
Status stack_family(KernelContext &ctx, int rank, int dim, bool column) {
  std::vector<Tensor> pieces;
  for (const Tensor *t : ctx.list(0)) {
    Shape shape = t->shape();
    if (column && shape.size() < 2)
      shape = {t->num_elements(), 1};
    else if (rank == 2 && shape.size() < 2)
      shape = {1, t->num_elements()};
    else if (rank == 3 && shape.size() < 3)
      shape = shape.size() == 2 ? Shape{shape[0], shape[1], 1} : Shape{1, t->num_elements(), 1};
    else if (rank == 1 && shape.empty())
      shape = {1};
    pieces.push_back(same_element(*t, ctx.type().element).reshaped(shape));
  }
  EVAL_REQUIRE(!pieces.empty(), "nothing to stack");
  return concatenate(ctx, pieces, rank == 1 && pieces[0].rank() == 1 ? 0 : dim);
}
Status k_hstack(KernelContext &ctx) { return stack_family(ctx, 1, 1, false); }
Status k_vstack(KernelContext &ctx) { return stack_family(ctx, 2, 0, false); }
Status k_dstack(KernelContext &ctx) { return stack_family(ctx, 3, 2, false); }
Status k_column_stack(KernelContext &ctx) { return stack_family(ctx, 2, 1, true); }

Status k_roll(KernelContext &ctx) {
  Tensor x = ctx.in(0);
  const Shape shape = x.shape();
  const std::vector<i64> shifts = ctx.integers("shifts");
  std::vector<i64> dims = ctx.integers("dims");
  if (dims.empty()) {
    EVAL_REQUIRE(shifts.size() == 1, "several shifts need as many dims");
    x = x.reshaped({x.num_elements()});
    dims = {0};
  }
  EVAL_REQUIRE(shifts.size() == dims.size(), "shifts and dims differ in length");
  for (size_t i = 0; i < dims.size(); ++i) {
    const int dim = wrap_dim(dims[i], x.rank());
    EVAL_REQUIRE(dim >= 0 && x.rank() > 0, "dim out of range");
    const i64 n = x.dim(dim);
    if (n == 0)
      continue;
    const i64 shift = (shifts[i] % n + n) % n;
    Tensor out = Tensor::allocate(x.element(), x.shape());
    const Shape strides = dense_strides(x.shape());
    const i64 stride = strides[static_cast<size_t>(dim)];
    const auto item = static_cast<i64>(x.item_bytes());
    Shape part = x.shape();
    part[static_cast<size_t>(dim)] = n - shift;
    copy_strided(x.item_bytes(), part, x.data(), strides,
                 out.mutable_data() + shift * stride * item, strides);
    part[static_cast<size_t>(dim)] = shift;
    copy_strided(x.item_bytes(), part, x.data() + (n - shift) * stride * item, strides,
                 out.mutable_data(), strides);
    x = std::move(out);
  }
  ctx.set(0, x.reshaped(shape));
  return {};
}

Status k_constant_pad(KernelContext &ctx) {
  return pad_tensor(ctx, ctx.integers("pad"), PadMode::Constant, ctx.real_or("value", 0));
}
Status k_reflection_pad(KernelContext &ctx) {
  return pad_tensor(ctx, ctx.integers("padding"), PadMode::Reflect, 0);
}
Status k_replication_pad(KernelContext &ctx) {
  return pad_tensor(ctx, ctx.integers("padding"), PadMode::Replicate, 0);
}
Status k_pad_circular(KernelContext &ctx) {
  return pad_tensor(ctx, ctx.integers("pad"), PadMode::Circular, 0);
}
Status k_pad(KernelContext &ctx) {
  const std::string_view mode = ctx.text("mode");
  const PadMode m = mode == "constant"    ? PadMode::Constant
                    : mode == "reflect"   ? PadMode::Reflect
                    : mode == "replicate" ? PadMode::Replicate
                                          : PadMode::Circular;
  EVAL_REQUIRE(m != PadMode::Circular || mode == "circular", "unknown padding mode");
  return pad_tensor(ctx, ctx.integers("pad"), m, ctx.real_or("value", 0));
}

/// The operand with a strided part of it replaced by `source` (of shape `box`).
Status replace_part(KernelContext &ctx, const Tensor &source, const Shape &box, i64 offset,
                    const Shape &strides) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(source.element() == x.element() && num_elements(box) == source.num_elements(),
               "the source does not fit the part it replaces");
  Tensor &out = ctx.out();
  EVAL_REQUIRE(out.shape() == x.shape() && out.element() == x.element(),
               "the result has another type than the operand");
  if (x.num_bytes())
    std::memcpy(out.mutable_data(), x.data(), x.num_bytes());
  copy_strided(x.item_bytes(), box, source.data(), dense_strides(box),
               out.mutable_data() + offset * static_cast<i64>(x.item_bytes()), strides);
  return {};
}
Status k_select_scatter(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(x.rank() > 0 && dim >= 0, "dim out of range");
  i64 index = ctx.integer("index");
  index = index < 0 ? index + x.dim(dim) : index;
  EVAL_REQUIRE(index >= 0 && index < x.dim(dim), "index out of range");
  Shape box = x.shape();
  const Shape strides = dense_strides(box);
  box[static_cast<size_t>(dim)] = 1;
  return replace_part(ctx, ctx.in(1), box, index * strides[static_cast<size_t>(dim)], strides);
}
Status k_slice_scatter(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  const i64 step = ctx.integer("step");
  EVAL_REQUIRE(x.rank() > 0 && dim >= 0 && step > 0, "dim or step out of range");
  const auto d = static_cast<size_t>(dim);
  const i64 n = x.dim(dim);
  const auto bound = [&](i64 v) { return std::clamp<i64>(v < 0 ? v + n : v, 0, n); };
  const i64 start = bound(ctx.integer_or("start", 0));
  const i64 end = std::max(start, ctx.is_none("end") ? n : bound(ctx.integer("end")));
  Shape box = x.shape();
  Shape strides = dense_strides(box);
  box[d] = (end - start + step - 1) / step;
  const i64 offset = box[d] ? start * strides[d] : 0;
  strides[d] *= step;
  return replace_part(ctx, ctx.in(1), box, offset, strides);
}
Status k_diagonal_scatter(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int a = wrap_dim(ctx.integer("dim1"), x.rank());
  const int b = wrap_dim(ctx.integer("dim2"), x.rank());
  EVAL_REQUIRE(x.rank() >= 2 && a >= 0 && b >= 0 && a != b, "dims out of range");
  const i64 shift = ctx.integer("offset");
  const i64 row = std::max<i64>(0, -shift);
  const i64 column = std::max<i64>(0, shift);
  const i64 count = std::max<i64>(0, std::min(x.dim(a) - row, x.dim(b) - column));
  const Shape dense = dense_strides(x.shape());
  Shape box;
  Shape strides;
  for (int d = 0; d < x.rank(); ++d)
    if (d != a && d != b) {
      box.push_back(x.dim(d));
      strides.push_back(dense[static_cast<size_t>(d)]);
    }
  const i64 sa = dense[static_cast<size_t>(a)];
  const i64 sb = dense[static_cast<size_t>(b)];
  box.push_back(count);
  strides.push_back(sa + sb);
  return replace_part(ctx, ctx.in(1), box, count ? row * sa + column * sb : 0, strides);
}

constexpr KernelEntry kEntries[] = {
    {"aten.cat.default", k_cat},
    {"aten.concat.default", k_cat},
    {"aten.concatenate.default", k_cat},
    {"aten.stack.default", k_stack},
    {"aten.hstack.default", k_hstack},
    {"aten.vstack.default", k_vstack},
    {"aten.dstack.default", k_dstack},
    {"aten.column_stack.default", k_column_stack},
    {"aten.roll.default", k_roll},
    {"aten.constant_pad_nd.default", k_constant_pad},
    {"aten.pad.default", k_pad},
    {"aten._pad_circular.default", k_pad_circular},
    {"aten.reflection_pad1d.default", k_reflection_pad},
    {"aten.reflection_pad2d.default", k_reflection_pad},
    {"aten.reflection_pad3d.default", k_reflection_pad},
    {"aten.replication_pad1d.default", k_replication_pad},
    {"aten.replication_pad2d.default", k_replication_pad},
    {"aten.replication_pad3d.default", k_replication_pad},
    {"aten.select_scatter.default", k_select_scatter},
    {"aten.slice_scatter.default", k_slice_scatter},
    {"aten.diagonal_scatter.default", k_diagonal_scatter},
};

} // namespace

std::span<const KernelEntry> join_kernels() { return kEntries; }

} // namespace chute::eval

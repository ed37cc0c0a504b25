// Operators that read their operand through strides: permutations, slices, expansions, flips.

#include "eval/strided.h"

#include "eval/broadcast.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"

#include <algorithm>
#include <numeric>

namespace chute::eval {

Tensor slice(const Tensor &x, int dim, i64 start, i64 step, i64 count, bool keep) {
  Shape shape = x.shape();
  Shape strides = dense_strides(shape);
  const auto d = static_cast<size_t>(dim);
  const i64 offset = count ? start * strides[d] : 0;
  shape[d] = count;
  strides[d] *= step;
  if (!keep) {
    shape.erase(shape.begin() + dim);
    strides.erase(strides.begin() + dim);
  }
  // Whole leading blocks need no copy: the bytes are one run.
  bool whole = step == 1;
  for (size_t i = 0; i < d; ++i)
    whole = whole && x.shape()[i] == 1;
  if (whole)
    return Tensor::view(x.element(), std::move(shape),
                        x.data() + offset * static_cast<i64>(x.item_bytes()), x.owner());
  return gather_strided(x, std::move(shape), offset, strides);
}

/// split, chunk, tensor_split, hsplit…: the results' own extents say where the cuts are.
Status split_along(KernelContext &ctx, const Tensor &x, int dim) {
  EVAL_REQUIRE(dim >= 0 && x.rank() > dim, "dim out of range");
  i64 start = 0;
  for (u32 i = 0; i < ctx.num_results(); ++i) {
    const Shape &shape = ctx.type(i).shape;
    EVAL_REQUIRE(ctx.type(i).known() && shape.size() == static_cast<size_t>(x.rank()),
                 "the results' shapes do not fit");
    const i64 count = shape[static_cast<size_t>(dim)];
    EVAL_REQUIRE(count <= x.dim(dim) - start, "the pieces are longer than the dim");
    ctx.set(i, slice(x, dim, start, 1, count));
    start += count;
  }
  return {};
}

namespace {

Status permute_by(KernelContext &ctx, std::vector<i64> dims) {
  const Tensor &x = ctx.in(0);
  std::vector<bool> seen(static_cast<size_t>(x.rank()));
  EVAL_REQUIRE(dims.size() == seen.size(), "dims names another number of dims than there are");
  for (i64 &d : dims) {
    d = wrap_dim(d, x.rank());
    EVAL_REQUIRE(d >= 0 && !seen[static_cast<size_t>(d)], "dims is not a permutation");
    seen[static_cast<size_t>(d)] = true;
  }
  ctx.set(0, permute(x, dims));
  return {};
}

std::vector<i64> identity(int rank) {
  std::vector<i64> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Status k_permute(KernelContext &ctx) { return permute_by(ctx, ctx.integers("dims")); }

Status swap_dims(KernelContext &ctx, i64 a, i64 b) {
  const int rank = ctx.in(0).rank();
  std::vector<i64> dims = identity(rank);
  const int i = wrap_dim(a, rank);
  const int j = wrap_dim(b, rank);
  EVAL_REQUIRE(i >= 0 && j >= 0, "dim out of range");
  if (rank)
    std::swap(dims[static_cast<size_t>(i)], dims[static_cast<size_t>(j)]);
  return permute_by(ctx, dims);
}
Status k_transpose(KernelContext &ctx) {
  return swap_dims(ctx, ctx.integer("dim0"), ctx.integer("dim1"));
}
Status k_swapaxes(KernelContext &ctx) {
  return swap_dims(ctx, ctx.integer("axis0"), ctx.integer("axis1"));
}
Status k_t(KernelContext &ctx) {
  return ctx.in(0).rank() < 2 ? permute_by(ctx, identity(ctx.in(0).rank())) : swap_dims(ctx, 0, 1);
}
Status k_mT(KernelContext &ctx) { return swap_dims(ctx, -2, -1); }
Status k_numpy_T(KernelContext &ctx) {
  std::vector<i64> dims = identity(ctx.in(0).rank());
  std::reverse(dims.begin(), dims.end());
  return permute_by(ctx, dims);
}
Status k_movedim(KernelContext &ctx) {
  const int rank = ctx.in(0).rank();
  const std::vector<i64> from = ctx.integers("source");
  const std::vector<i64> to = ctx.integers("destination");
  EVAL_REQUIRE(from.size() == to.size(), "source and destination differ in length");
  std::vector<i64> dims(static_cast<size_t>(rank), -1);
  std::vector<bool> moved(static_cast<size_t>(rank));
  for (size_t i = 0; i < from.size(); ++i) {
    const int s = wrap_dim(from[i], rank);
    const int d = wrap_dim(to[i], rank);
    EVAL_REQUIRE(s >= 0 && d >= 0 && rank > 0, "dim out of range");
    dims[static_cast<size_t>(d)] = s;
    moved[static_cast<size_t>(s)] = true;
  }
  size_t next = 0;
  for (i64 &d : dims) {
    if (d >= 0)
      continue;
    while (next < moved.size() && moved[next])
      ++next;
    EVAL_REQUIRE(next < moved.size(), "a dim is named twice");
    d = static_cast<i64>(next++);
  }
  return permute_by(ctx, dims);
}

Status expand_to(KernelContext &ctx, const Shape &shape) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(broadcasts_to(x.shape(), shape), "the operand does not broadcast to the result");
  if (x.shape() == shape) {
    ctx.set(0, x);
    return {};
  }
  const Shape dense = dense_strides(x.shape());
  Shape strides(shape.size(), 0);
  for (size_t i = 0; i < dense.size(); ++i)
    if (x.shape()[i] != 1)
      strides[i + shape.size() - dense.size()] = dense[i];
  ctx.set(0, gather_strided(x, shape, 0, strides));
  return {};
}
Status k_expand(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.type().known(), "the result's shape is not known");
  return expand_to(ctx, ctx.type().shape);
}
Status k_broadcast_tensors(KernelContext &ctx) {
  const auto tensors = ctx.list(0);
  for (u32 i = 0; i < ctx.num_results(); ++i) {
    const Tensor &x = *tensors[i];
    const Shape &shape = ctx.type(i).shape;
    EVAL_REQUIRE(broadcasts_to(x.shape(), shape), "the operand does not broadcast to the result");
    const Shape dense = dense_strides(x.shape());
    Shape strides(shape.size(), 0);
    for (size_t d = 0; d < dense.size(); ++d)
      if (x.shape()[d] != 1)
        strides[d + shape.size() - dense.size()] = dense[d];
    ctx.set(i, gather_strided(x, shape, 0, strides));
  }
  return {};
}

Status k_slice(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(x.rank() > 0 && dim >= 0, "dim out of range");
  const i64 size = x.dim(dim);
  const i64 step = ctx.integer("step");
  EVAL_REQUIRE(step > 0, "step must be positive");
  const auto bound = [&](i64 v) { return std::clamp<i64>(v < 0 ? v + size : v, 0, size); };
  const i64 start = bound(ctx.integer_or("start", 0));
  const i64 end = std::max(start, ctx.is_none("end") ? size : bound(ctx.integer("end")));
  ctx.set(0, slice(x, dim, start, step, (end - start + step - 1) / step));
  return {};
}
Status k_narrow(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(x.rank() > 0 && dim >= 0, "dim out of range");
  i64 start = ctx.integer("start");
  const i64 length = ctx.integer("length");
  if (start < 0)
    start += x.dim(dim);
  EVAL_REQUIRE(start >= 0 && length >= 0 && start <= x.dim(dim) - length, "range out of bounds");
  ctx.set(0, slice(x, dim, start, 1, length));
  return {};
}
Status k_select(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(x.rank() > 0 && dim >= 0, "dim out of range");
  i64 index = ctx.integer("index");
  if (index < 0)
    index += x.dim(dim);
  EVAL_REQUIRE(index >= 0 && index < x.dim(dim), "index out of range");
  ctx.set(0, slice(x, dim, index, 1, 1, false));
  return {};
}
Status k_unbind(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(x.rank() > 0 && dim >= 0 && x.dim(dim) == static_cast<i64>(ctx.num_results()),
               "the number of results is not the dim's extent");
  for (u32 i = 0; i < ctx.num_results(); ++i)
    ctx.set(i, slice(x, dim, i, 1, 1, false));
  return {};
}
Status k_split(KernelContext &ctx) {
  return split_along(ctx, ctx.in(0), wrap_dim(ctx.integer("dim"), ctx.in(0).rank()));
}
Status k_hsplit(KernelContext &ctx) {
  return split_along(ctx, ctx.in(0), ctx.in(0).rank() == 1 ? 0 : 1);
}
Status k_vsplit(KernelContext &ctx) { return split_along(ctx, ctx.in(0), 0); }
Status k_dsplit(KernelContext &ctx) { return split_along(ctx, ctx.in(0), 2); }

Status flip_dims(KernelContext &ctx, std::span<const i64> dims) {
  const Tensor &x = ctx.in(0);
  Shape strides = dense_strides(x.shape());
  i64 offset = 0;
  for (i64 v : dims) {
    const int d = wrap_dim(v, x.rank());
    EVAL_REQUIRE(d >= 0, "dim out of range");
    if (x.rank() == 0)
      continue;
    i64 &s = strides[static_cast<size_t>(d)];
    EVAL_REQUIRE(s > 0, "a dim is named twice");
    offset += std::max<i64>(x.dim(d) - 1, 0) * s;
    s = -s;
  }
  ctx.set(0, gather_strided(x, x.shape(), x.num_elements() ? offset : 0, strides));
  return {};
}
Status k_flip(KernelContext &ctx) { return flip_dims(ctx, ctx.integers("dims")); }
Status k_fliplr(KernelContext &ctx) { return flip_dims(ctx, std::vector<i64>{1}); }
Status k_flipud(KernelContext &ctx) { return flip_dims(ctx, std::vector<i64>{0}); }

Status repeat_dims(KernelContext &ctx, std::vector<i64> repeats) {
  const Tensor &x = ctx.in(0);
  const auto rank = static_cast<size_t>(x.rank());
  while (repeats.size() < rank) // tile pads its counts at the left
    repeats.insert(repeats.begin(), 1);
  const Shape dense = dense_strides(x.shape());
  // [r0, s0, r1, s1, …] with stride 0 for each r, then read as [r0 * s0, r1 * s1, …].
  Shape shape;
  Shape strides;
  Shape result;
  for (size_t i = 0; i < repeats.size(); ++i) {
    EVAL_REQUIRE(repeats[i] >= 0, "a repeat count is negative");
    const size_t pad = repeats.size() - rank;
    const i64 extent = i < pad ? 1 : x.shape()[i - pad];
    shape.insert(shape.end(), {repeats[i], extent});
    strides.insert(strides.end(), {0, i < pad ? 0 : dense[i - pad]});
    i64 n = 0;
    EVAL_REQUIRE(!__builtin_mul_overflow(repeats[i], extent, &n), "the result is too large");
    result.push_back(n);
  }
  ctx.set(0, gather_strided(x, shape, 0, strides).reshaped(result));
  return {};
}
Status k_repeat(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.integers("repeats").size() >= static_cast<size_t>(ctx.in(0).rank()),
               "fewer repeat counts than dims");
  return repeat_dims(ctx, ctx.integers("repeats"));
}
Status k_tile(KernelContext &ctx) { return repeat_dims(ctx, ctx.integers("dims")); }
Status k_repeat_interleave(KernelContext &ctx) {
  Tensor x = ctx.in(0);
  if (ctx.is_none("dim"))
    x = x.reshaped({x.num_elements()});
  const int dim = wrap_dim(ctx.integer_or("dim", 0), x.rank());
  const i64 repeats = ctx.integer("repeats");
  EVAL_REQUIRE(dim >= 0 && x.rank() > 0 && repeats >= 0, "dim or count out of range");
  Shape shape = x.shape();
  Shape strides = dense_strides(shape);
  Shape result = shape;
  EVAL_REQUIRE(!__builtin_mul_overflow(result[static_cast<size_t>(dim)], repeats,
                                       &result[static_cast<size_t>(dim)]),
               "the result is too large");
  shape.insert(shape.begin() + dim + 1, repeats);
  strides.insert(strides.begin() + dim + 1, 0);
  ctx.set(0, gather_strided(x, shape, 0, strides).reshaped(result));
  return {};
}

Status k_diagonal(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int a = wrap_dim(ctx.integer("dim1"), x.rank());
  const int b = wrap_dim(ctx.integer("dim2"), x.rank());
  EVAL_REQUIRE(x.rank() >= 2 && a >= 0 && b >= 0 && a != b, "dims out of range");
  const i64 offset = ctx.integer("offset");
  const Shape dense = dense_strides(x.shape());
  const i64 row = offset < 0 ? -offset : 0;
  const i64 column = offset > 0 ? offset : 0;
  const i64 count = std::max<i64>(0, std::min(x.dim(a) - row, x.dim(b) - column));
  Shape shape;
  Shape strides;
  for (int d = 0; d < x.rank(); ++d) {
    if (d == a || d == b)
      continue;
    shape.push_back(x.dim(d));
    strides.push_back(dense[static_cast<size_t>(d)]);
  }
  const i64 sa = dense[static_cast<size_t>(a)];
  const i64 sb = dense[static_cast<size_t>(b)];
  shape.push_back(count);
  strides.push_back(sa + sb);
  ctx.set(0, gather_strided(x, shape, count ? row * sa + column * sb : 0, strides));
  return {};
}
Status k_unfold(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int dim = wrap_dim(ctx.integer("dimension"), x.rank());
  const i64 size = ctx.integer("size");
  const i64 step = ctx.integer("step");
  EVAL_REQUIRE(dim >= 0 && size >= 0 && step > 0, "size, step or dimension out of range");
  Shape shape = x.shape();
  Shape strides = dense_strides(shape);
  if (x.rank() == 0) {
    shape = {1};
    strides = {1};
  }
  const auto d = static_cast<size_t>(dim);
  EVAL_REQUIRE(size <= shape[d], "size is larger than the dim");
  shape.push_back(size);
  strides.push_back(strides[d]);
  shape[d] = (shape[d] - size) / step + 1;
  strides[d] *= step;
  if (x.rank() == 0)
    shape = {size};
  ctx.set(0, gather_strided(x, shape, 0, x.rank() ? strides : Shape{1}));
  return {};
}
/// Strides count in the operand's storage, which is dense here: the operand itself has to be so in
/// PyTorch too, which functionalize makes sure of.
Status k_as_strided(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Shape shape = ctx.integers("size");
  const Shape strides = ctx.integers("stride");
  const i64 offset = ctx.integer_or("storage_offset", 0);
  EVAL_REQUIRE(shape.size() == strides.size() && offset >= 0, "size and stride differ in length");
  i64 last = offset;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    i64 reach = 0;
    EVAL_REQUIRE(shape[i] >= 0 && strides[i] >= 0 &&
                     !__builtin_mul_overflow(std::max<i64>(shape[i] - 1, 0), strides[i], &reach) &&
                     !__builtin_add_overflow(last, reach, &last),
                 "size or stride out of range");
    empty = empty || shape[i] == 0;
  }
  EVAL_REQUIRE(empty || last < x.num_elements(), "the view reaches beyond the operand");
  ctx.set(0, gather_strided(x, shape, empty ? 0 : offset, strides));
  return {};
}

/// View as `split`, permute, view as the result: the whole family of shuffles.
Status shuffle(KernelContext &ctx, Shape split, std::vector<i64> dims) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(num_elements(split) == x.num_elements() && ctx.type().known() &&
                   num_elements(ctx.type().shape) == x.num_elements(),
               "the factor does not divide the dims");
  ctx.set(0, permute(x.reshaped(std::move(split)), dims).reshaped(ctx.type().shape));
  return {};
}
Status k_pixel_shuffle(KernelContext &ctx) {
  const Shape &s = ctx.in(0).shape();
  const i64 r = ctx.integer("upscale_factor");
  EVAL_REQUIRE(s.size() >= 3 && r > 0, "needs a rank of 3 or more and a positive factor");
  const size_t n = s.size();
  const i64 batch = num_elements(std::span(s).first(n - 3));
  return shuffle(ctx, {batch, s[n - 3] / r / r, r, r, s[n - 2], s[n - 1]}, {0, 1, 4, 2, 5, 3});
}
Status k_pixel_unshuffle(KernelContext &ctx) {
  const Shape &s = ctx.in(0).shape();
  const i64 r = ctx.integer("downscale_factor");
  EVAL_REQUIRE(s.size() >= 3 && r > 0, "needs a rank of 3 or more and a positive factor");
  const size_t n = s.size();
  const i64 batch = num_elements(std::span(s).first(n - 3));
  return shuffle(ctx, {batch, s[n - 3], s[n - 2] / r, r, s[n - 1] / r, r}, {0, 1, 3, 5, 2, 4});
}
Status k_channel_shuffle(KernelContext &ctx) {
  const Shape &s = ctx.in(0).shape();
  const i64 g = ctx.integer("groups");
  EVAL_REQUIRE(s.size() >= 2 && g > 0, "needs a rank of 2 or more and a positive number of groups");
  return shuffle(ctx, {s[0], g, s[1] / g, num_elements(std::span(s).subspan(2))}, {0, 2, 1, 3});
}

constexpr KernelEntry kEntries[] = {
    {"aten.permute.default", k_permute},
    {"aten.permute_copy.default", k_permute},
    {"aten.transpose.int", k_transpose},
    {"aten.transpose_copy.int", k_transpose},
    {"aten.swapdims.default", k_transpose},
    {"aten.swapaxes.default", k_swapaxes},
    {"aten.t.default", k_t},
    {"aten.t_copy.default", k_t},
    {"aten.mT.default", k_mT},
    {"aten.numpy_T.default", k_numpy_T},
    {"aten.movedim.int", k_movedim},
    {"aten.movedim.intlist", k_movedim},
    {"aten.moveaxis.int", k_movedim},
    {"aten.moveaxis.intlist", k_movedim},
    {"aten.expand.default", k_expand},
    {"aten.expand_copy.default", k_expand},
    {"aten.expand_as.default", k_expand},
    {"aten.broadcast_to.default", k_expand},
    {"aten.broadcast_tensors.default", k_broadcast_tensors},
    {"aten.slice.Tensor", k_slice},
    {"aten.slice_copy.Tensor", k_slice},
    {"aten.narrow.default", k_narrow},
    {"aten.narrow_copy.default", k_narrow},
    {"aten.select.int", k_select},
    {"aten.select_copy.int", k_select},
    {"aten.unbind.int", k_unbind},
    {"aten.unbind_copy.int", k_unbind},
    {"aten.split.Tensor", k_split},
    {"aten.split.sizes", k_split},
    {"aten.split_copy.Tensor", k_split},
    {"aten.split_with_sizes.default", k_split},
    {"aten.split_with_sizes_copy.default", k_split},
    {"aten.unsafe_split.Tensor", k_split},
    {"aten.unsafe_split_with_sizes.default", k_split},
    {"aten.chunk.default", k_split},
    {"aten.unsafe_chunk.default", k_split},
    {"aten.tensor_split.indices", k_split},
    {"aten.tensor_split.sections", k_split},
    {"aten.hsplit.int", k_hsplit},
    {"aten.vsplit.int", k_vsplit},
    {"aten.dsplit.int", k_dsplit},
    {"aten.flip.default", k_flip},
    {"aten.fliplr.default", k_fliplr},
    {"aten.flipud.default", k_flipud},
    {"aten.repeat.default", k_repeat},
    {"aten.tile.default", k_tile},
    {"aten.repeat_interleave.self_int", k_repeat_interleave},
    {"aten.diagonal.default", k_diagonal},
    {"aten.diagonal_copy.default", k_diagonal},
    {"aten.unfold.default", k_unfold},
    {"aten.unfold_copy.default", k_unfold},
    {"aten.as_strided.default", k_as_strided},
    {"aten.as_strided_copy.default", k_as_strided},
    {"aten.pixel_shuffle.default", k_pixel_shuffle},
    {"aten.pixel_unshuffle.default", k_pixel_unshuffle},
    {"aten.channel_shuffle.default", k_channel_shuffle},
};

} // namespace

std::span<const KernelEntry> strided_kernels() { return kEntries; }

} // namespace chute::eval

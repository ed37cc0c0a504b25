// Movement operators of the Circle dialect: shapes, axes and bounds are operands.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/indices.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace chute::eval {

namespace {

Status k_transpose(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  std::vector<i64> dims = values_of(ctx.in(1));
  std::vector<i64> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  std::vector<i64> identity(static_cast<size_t>(x.rank()));
  std::iota(identity.begin(), identity.end(), 0);
  EVAL_REQUIRE(sorted == identity, "perm is not a permutation");
  ctx.set(0, permute(x, dims));
  return {};
}
Status k_concatenation(KernelContext &ctx) {
  std::vector<Tensor> pieces;
  for (const Tensor *t : ctx.list(0))
    pieces.push_back(*t);
  EVAL_REQUIRE(!pieces.empty(), "nothing to join");
  if (Status s = concatenate(ctx, pieces, wrap_dim(ctx.integer("axis"), pieces[0].rank())); !s)
    return s;
  return activate(ctx);
}
Status k_pack(KernelContext &ctx) {
  std::vector<Tensor> pieces;
  int axis = -1;
  for (const Tensor *t : ctx.list(0)) {
    axis = wrap_dim(ctx.integer("axis"), t->rank() + 1);
    EVAL_REQUIRE(axis >= 0, "axis out of range");
    Shape shape = t->shape();
    shape.insert(shape.begin() + axis, 1);
    pieces.push_back(t->reshaped(shape));
  }
  return concatenate(ctx, pieces, axis);
}
Status k_unpack(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int axis = wrap_dim(ctx.integer("axis"), x.rank());
  EVAL_REQUIRE(x.rank() > 0 && axis >= 0 && x.dim(axis) == static_cast<i64>(ctx.num_results()),
               "the number of results is not the dim's extent");
  for (u32 i = 0; i < ctx.num_results(); ++i)
    ctx.set(i, slice(x, axis, i, 1, 1, false));
  return {};
}
Status k_split(KernelContext &ctx) { // (axis, x)
  EVAL_REQUIRE(ctx.in(0).num_elements() == 1, "the axis is not one number");
  return split_along(ctx, ctx.in(1), wrap_dim(ctx.in(0).int_at(0), ctx.in(1).rank()));
}
Status k_split_v(KernelContext &ctx) { // (x, sizes, axis)
  EVAL_REQUIRE(ctx.in(2).num_elements() == 1, "the axis is not one number");
  return split_along(ctx, ctx.in(0), wrap_dim(ctx.in(2).int_at(0), ctx.in(0).rank()));
}
Status k_slice(KernelContext &ctx) {
  Tensor x = ctx.in(0);
  const std::vector<i64> begin = values_of(ctx.in(1));
  const std::vector<i64> size = values_of(ctx.in(2));
  const auto rank = static_cast<size_t>(x.rank());
  EVAL_REQUIRE(begin.size() == rank && size.size() == rank, "begin or size have a wrong length");
  for (size_t d = 0; d < rank; ++d) {
    const i64 n = x.shape()[d];
    EVAL_REQUIRE(begin[d] >= 0 && begin[d] <= n, "begin out of range");
    const i64 count = size[d] < 0 ? n - begin[d] : size[d]; // -1: to the end
    EVAL_REQUIRE(count <= n - begin[d], "size out of range");
    x = slice(x, static_cast<int>(d), begin[d], 1, count);
  }
  ctx.set(0, std::move(x));
  return {};
}
/// Without ellipsis and new axes, which chute never writes.
Status k_strided_slice(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> begin = values_of(ctx.in(1));
  const std::vector<i64> end = values_of(ctx.in(2));
  const std::vector<i64> step = values_of(ctx.in(3));
  const auto rank = static_cast<size_t>(x.rank());
  EVAL_REQUIRE(ctx.integer("ellipsis_mask") == 0 && ctx.integer("new_axis_mask") == 0,
               "ellipsis and new axes of strided_slice are not evaluated");
  EVAL_REQUIRE(begin.size() <= rank && end.size() == begin.size() && step.size() == begin.size(),
               "begin, end or strides have a wrong length");
  const auto masked = [&](std::string_view mask, size_t d) {
    return (static_cast<u64>(ctx.integer(mask)) >> d & 1) != 0;
  };
  Shape shape;
  Shape strides;
  i64 offset = 0;
  const Shape dense = dense_strides(x.shape());
  for (size_t d = 0; d < rank; ++d) {
    const i64 n = x.shape()[d];
    if (d >= begin.size()) {
      shape.push_back(n);
      strides.push_back(dense[d]);
      continue;
    }
    const i64 s = step[d];
    EVAL_REQUIRE(s != 0, "a stride is zero");
    const bool shrink = masked("shrink_axis_mask", d);
    const i64 lowest = s > 0 ? 0 : -1;
    const i64 highest = s > 0 ? n : n - 1;
    const auto bound = [&](i64 v, bool free, i64 open) {
      return free ? open : std::clamp(v < 0 ? v + n : v, lowest, highest);
    };
    const i64 b = bound(begin[d], masked("begin_mask", d) && !shrink, s > 0 ? 0 : n - 1);
    const i64 e = bound(end[d], masked("end_mask", d), s > 0 ? n : -1);
    if (shrink) {
      EVAL_REQUIRE(b >= 0 && b < n, "index out of range");
      offset += b * dense[d];
      continue;
    }
    const i64 count =
        s > 0 ? (e > b ? (e - b - 1) / s + 1 : 0) : (b > e ? (b - e - 1) / -s + 1 : 0);
    shape.push_back(count);
    strides.push_back(dense[d] * s);
    offset += count ? b * dense[d] : 0;
  }
  ctx.set(0, gather_strided(x, shape, num_elements(shape) ? offset : 0, strides));
  return {};
}
Status pad_by(KernelContext &ctx, PadMode mode, double value) {
  const std::vector<i64> rows = values_of(ctx.in(1)); // [rank, 2], from the first dim
  const auto rank = static_cast<size_t>(ctx.in(0).rank());
  EVAL_REQUIRE(rows.size() == 2 * rank, "paddings has a wrong size");
  std::vector<i64> pad;
  for (size_t d = rank; d-- > 0;)
    pad.insert(pad.end(), {rows[2 * d], rows[2 * d + 1]});
  return pad_tensor(ctx, pad, mode, value);
}
Status k_pad(KernelContext &ctx) { return pad_by(ctx, PadMode::Constant, 0); }
Status k_pad_v2(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(2).num_elements() == 1, "the value is not one number");
  return pad_by(ctx, PadMode::Constant, ctx.in(2).at(0));
}
Status k_mirror_pad(KernelContext &ctx) {
  return pad_by(ctx, ctx.text("mode") == "SYMMETRIC" ? PadMode::Symmetric : PadMode::Reflect, 0);
}
Status k_broadcast_to(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Shape shape = values_of(ctx.in(1));
  EVAL_REQUIRE(broadcasts_to(x.shape(), shape), "the operand does not broadcast to the shape");
  const Shape dense = dense_strides(x.shape());
  Shape strides(shape.size(), 0);
  for (size_t i = 0; i < dense.size(); ++i)
    if (x.shape()[i] != 1)
      strides[i + shape.size() - dense.size()] = dense[i];
  ctx.set(0, gather_strided(x, shape, 0, strides));
  return {};
}
Status k_tile(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> times = values_of(ctx.in(1));
  EVAL_REQUIRE(times.size() == x.shape().size(), "multiples has a wrong length");
  const Shape dense = dense_strides(x.shape());
  Shape shape;
  Shape strides;
  Shape result;
  for (size_t d = 0; d < times.size(); ++d) {
    i64 n = 0;
    EVAL_REQUIRE(times[d] >= 0 && !__builtin_mul_overflow(times[d], x.shape()[d], &n),
                 "multiples out of range");
    shape.insert(shape.end(), {times[d], x.shape()[d]});
    strides.insert(strides.end(), {0, dense[d]});
    result.push_back(n);
  }
  ctx.set(0, gather_strided(x, shape, 0, strides).reshaped(result));
  return {};
}
Status k_gather(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &index = ctx.in(1);
  const int axis = wrap_dim(ctx.integer("axis"), x.rank());
  i64 batch = ctx.integer("batch_dims");
  batch += batch < 0 ? index.rank() : 0;
  std::vector<i64> rows;
  EVAL_REQUIRE(x.rank() > 0 && axis >= 0 && load_indices(index, x.dim(axis), rows),
               "axis or an index is out of range");
  EVAL_REQUIRE(batch >= 0 && batch <= axis && batch <= index.rank() &&
                   std::equal(x.shape().begin(), x.shape().begin() + batch, index.shape().begin()),
               "batch_dims does not fit");
  // x [batches, outer, n, inner] by index [batches, taken] gives [batches, outer, taken, inner].
  const auto extent = [](const Shape &s, i64 from, i64 to) {
    return num_elements(
        std::span(s).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
  };
  const i64 batches = extent(x.shape(), 0, batch);
  const i64 outer = extent(x.shape(), batch, axis);
  const i64 n = x.dim(axis);
  const i64 taken = extent(index.shape(), batch, index.rank());
  const size_t run = static_cast<size_t>(extent(x.shape(), axis + 1, x.rank())) * x.item_bytes();
  Shape shape(x.shape().begin(), x.shape().begin() + axis);
  shape.insert(shape.end(), index.shape().begin() + batch, index.shape().end());
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  Tensor out = Tensor::allocate(x.element(), shape);
  std::byte *to = out.mutable_data();
  for (i64 b = 0; b < batches && run && n; ++b)
    for (i64 o = 0; o < outer; ++o)
      for (i64 k = 0; k < taken; ++k, to += run) {
        const i64 row = (b * outer + o) * n + rows[static_cast<size_t>(b * taken + k)];
        std::memcpy(to, x.data() + static_cast<size_t>(row) * run, run);
      }
  ctx.set(0, std::move(out));
  return {};
}
Status k_gather_nd(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &index = ctx.in(1);
  const i64 depth = index.rank() ? index.dim(index.rank() - 1) : 0;
  const std::vector<i64> v = values_of(index);
  EVAL_REQUIRE(depth > 0 && depth <= x.rank(), "the indices have a wrong size");
  std::vector<i64> rows;
  for (size_t i = 0; i < v.size(); i += static_cast<size_t>(depth)) {
    i64 row = 0;
    for (int d = 0; d < depth; ++d) {
      const i64 at = v[i + static_cast<size_t>(d)];
      EVAL_REQUIRE(at >= 0 && at < x.dim(d), "an index is out of range");
      row = row * x.dim(d) + at;
    }
    rows.push_back(row);
  }
  Shape table{num_elements(std::span(x.shape()).first(static_cast<size_t>(depth)))};
  table.insert(table.end(), x.shape().begin() + depth, x.shape().end());
  Shape shape(index.shape().begin(), index.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + depth, x.shape().end());
  ctx.set(0, take_rows(x.reshaped(table), rows).reshaped(shape));
  return {};
}
Status k_reverse(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  Shape strides = dense_strides(x.shape());
  i64 offset = 0;
  for (const i64 v : values_of(ctx.in(1))) {
    const int d = wrap_dim(v, x.rank());
    EVAL_REQUIRE(d >= 0 && x.rank() > 0 && strides[static_cast<size_t>(d)] > 0,
                 "axis out of range");
    offset += std::max<i64>(x.dim(d) - 1, 0) * strides[static_cast<size_t>(d)];
    strides[static_cast<size_t>(d)] *= -1;
  }
  ctx.set(0, gather_strided(x, x.shape(), x.num_elements() ? offset : 0, strides));
  return {};
}
Status k_fill(KernelContext &ctx) {
  const Shape shape = values_of(ctx.in(0));
  EVAL_REQUIRE(ctx.in(1).num_elements() == 1 &&
                   std::all_of(shape.begin(), shape.end(), [](i64 d) { return d >= 0; }),
               "shape or value out of range");
  ctx.set(0, gather_strided(ctx.in(1), shape, 0, Shape(shape.size(), 0)));
  return {};
}
Status k_shape(KernelContext &ctx) {
  const Shape &s = ctx.in(0).shape();
  Tensor out = Tensor::allocate(ctx.type().element, {static_cast<i64>(s.size())});
  EVAL_REQUIRE(out.element() == ElementType::I32 || out.element() == ElementType::I64,
               "a shape is of i32 or i64");
  for (size_t i = 0; i < s.size(); ++i) {
    if (out.element() == ElementType::I32)
      out.mutable_as<i32>()[i] = static_cast<i32>(s[i]);
    else
      out.mutable_as<i64>()[i] = s[i];
  }
  ctx.set(0, std::move(out));
  return {};
}

/// The shape operand counts, then the option, then the declared type.
Status k_reshape(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  Shape shape;
  if (ctx.has(1))
    shape = values_of(ctx.in(1));
  else if (!ctx.type().known())
    shape = ctx.integers("new_shape");
  else
    shape = ctx.type().shape;
  i64 known = 1;
  auto free = shape.end();
  for (auto it = shape.begin(); it != shape.end(); ++it) {
    if (*it < 0) {
      EVAL_REQUIRE(*it == -1 && free == shape.end(), "the shape has several free dimensions");
      free = it;
    } else {
      EVAL_REQUIRE(!__builtin_mul_overflow(known, *it, &known), "the shape is out of range");
    }
  }
  const i64 total = x.num_elements();
  if (free != shape.end()) {
    EVAL_REQUIRE(known > 0 && total % known == 0, "the free dimension is not whole");
    *free = total / known;
    known = total;
  }
  EVAL_REQUIRE(known == total, "the result has another number of elements");
  ctx.set(0, x.reshaped(shape));
  return {};
}

constexpr i64 kLongest = i64{1} << 40;

/// start + k * delta for every k that stays before limit.
Status k_range(KernelContext &ctx) {
  for (u32 i = 0; i < 3; ++i)
    EVAL_REQUIRE(ctx.in(i).num_elements() == 1 && ctx.in(i).element() == ctx.type().element,
                 "start, limit and delta are numbers of the result's type");
  const bool whole = ir::is_integer(ctx.type().element);
  const double start = ctx.in(0).at(0), limit = ctx.in(1).at(0), delta = ctx.in(2).at(0);
  EVAL_REQUIRE(delta != 0 && std::isfinite((limit - start) / delta), "delta is zero");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  EVAL_REQUIRE(count < static_cast<double>(kLongest), "the range is too long");
  const auto n = static_cast<i64>(count);
  Tensor out = Tensor::allocate(ctx.type().element, {n});
  if (whole) {
    std::vector<i64> v(static_cast<size_t>(n));
    const i64 first = ctx.in(0).int_at(0), step = ctx.in(2).int_at(0);
    for (i64 i = 0; i < n; ++i)
      v[static_cast<size_t>(i)] = first + i * step;
    store_run(out.element(), v.data(), n, out.mutable_data());
  } else {
    std::vector<double> v(static_cast<size_t>(n));
    for (i64 i = 0; i < n; ++i)
      v[static_cast<size_t>(i)] = start + static_cast<double>(i) * delta;
    store_run(out.element(), v.data(), n, out.mutable_data());
  }
  ctx.set(0, std::move(out));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle.reshape", k_reshape},
    {"circle.range", k_range},
    {"circle.transpose", k_transpose},
    {"circle.concatenation", k_concatenation},
    {"circle.pack", k_pack},
    {"circle.unpack", k_unpack},
    {"circle.split", k_split},
    {"circle.split_v", k_split_v},
    {"circle.slice", k_slice},
    {"circle.strided_slice", k_strided_slice},
    {"circle.pad", k_pad},
    {"circle.padv2", k_pad_v2},
    {"circle.mirror_pad", k_mirror_pad},
    {"circle.broadcast_to", k_broadcast_to},
    {"circle.tile", k_tile},
    {"circle.gather", k_gather},
    {"circle.gather_nd", k_gather_nd},
    {"circle.reverse_v2", k_reverse},
    {"circle.fill", k_fill},
    {"circle.shape", k_shape},
};

} // namespace

std::span<const KernelEntry> circle_movement_kernels() { return kEntries; }

} // namespace chute::eval

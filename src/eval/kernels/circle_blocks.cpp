// Circle operators that cut tensors into blocks, spread them out or turn parts of them around.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace chute::eval {

namespace {

/// A tensor full of one element (null: zeros).
Tensor filled(ElementType element, const Shape &shape, const Tensor *value) {
  return value ? gather_strided(*value, shape, 0, Shape(shape.size(), 0))
               : Tensor::zeros(element, shape);
}

/// Copies `x` into the box of `out` that starts at `begin` with distance `step` between elements.
void place(const Tensor &x, Tensor &out, const Shape &begin, const Shape &step) {
  Shape strides = dense_strides(out.shape());
  i64 offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += begin[d] * strides[d];
    strides[d] *= step[d];
  }
  if (x.num_elements())
    copy_strided(x.item_bytes(), x.shape(), x.data(), dense_strides(x.shape()),
                 out.mutable_data() + offset * static_cast<i64>(out.item_bytes()), strides);
}

Status k_depth_to_space(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const i64 b = ctx.integer("block_size");
  EVAL_REQUIRE(x.rank() == 4 && b > 0 && b < (i64{1} << 15) && x.dim(3) % (b * b) == 0,
               "block_size does not divide the channels");
  const i64 h = x.dim(1);
  const i64 w = x.dim(2);
  const i64 c = x.dim(3) / (b * b);
  const std::vector<i64> order{0, 1, 3, 2, 4, 5};
  ctx.set(
      0,
      permute(x.reshaped({x.dim(0), h, w, b, b, c}), order).reshaped({x.dim(0), h * b, w * b, c}));
  return {};
}
Status k_space_to_depth(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const i64 b = ctx.integer("block_size");
  EVAL_REQUIRE(x.rank() == 4 && b > 0 && b < (i64{1} << 15) && x.dim(1) % b == 0 &&
                   x.dim(2) % b == 0,
               "block_size does not divide height and width");
  const i64 h = x.dim(1) / b;
  const i64 w = x.dim(2) / b;
  const i64 c = x.dim(3);
  const std::vector<i64> order{0, 1, 3, 2, 4, 5};
  ctx.set(
      0,
      permute(x.reshaped({x.dim(0), h, b, w, b, c}), order).reshaped({x.dim(0), h, w, b * b * c}));
  return {};
}

/// Blocks and the (before, after) pairs of the dims behind the batch.
Status read_blocks(KernelContext &ctx, std::vector<i64> &block, std::vector<i64> &pairs) {
  block = values_of(ctx.in(1));
  pairs = values_of(ctx.in(2));
  const auto small = [](i64 v, i64 least) { return v >= least && v < (i64{1} << 31); };
  EVAL_REQUIRE(!block.empty() && block.size() < static_cast<size_t>(ctx.in(0).rank()) &&
                   pairs.size() == 2 * block.size() &&
                   std::all_of(block.begin(), block.end(), [&](i64 v) { return small(v, 1); }) &&
                   std::all_of(pairs.begin(), pairs.end(), [&](i64 v) { return small(v, 0); }),
               "block_shape, paddings or crops do not fit");
  return {};
}
Status k_space_to_batch(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  std::vector<i64> block;
  std::vector<i64> pad;
  if (Status s = read_blocks(ctx, block, pad); !s)
    return s;
  const size_t m = block.size();
  Shape shape = x.shape();
  Shape begin(shape.size(), 0);
  for (size_t i = 0; i < m; ++i) {
    begin[i + 1] = pad[2 * i];
    shape[i + 1] += pad[2 * i] + pad[2 * i + 1];
    EVAL_REQUIRE(shape[i + 1] % block[i] == 0, "a block does not divide its padded dim");
  }
  Tensor padded = Tensor::zeros(x.element(), shape);
  place(x, padded, begin, Shape(shape.size(), 1));
  // [n, h / b0, b0, w / b1, b1, …] to [b0, b1, n, h / b0, w / b1, …].
  Shape cut{shape[0]};
  Shape result{shape[0]};
  std::vector<i64> order;
  std::vector<i64> behind{0};
  for (size_t i = 0; i < m; ++i) {
    cut.insert(cut.end(), {shape[i + 1] / block[i], block[i]});
    order.push_back(static_cast<i64>(2 * i + 2));
    behind.push_back(static_cast<i64>(2 * i + 1));
    result[0] *= block[i];
    result.push_back(shape[i + 1] / block[i]);
  }
  order.insert(order.end(), behind.begin(), behind.end());
  for (size_t d = m + 1; d < shape.size(); ++d) {
    order.push_back(static_cast<i64>(d + m));
    cut.push_back(shape[d]);
    result.push_back(shape[d]);
  }
  ctx.set(0, permute(padded.reshaped(cut), order).reshaped(result));
  return {};
}
Status k_batch_to_space(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  std::vector<i64> block;
  std::vector<i64> crop;
  if (Status s = read_blocks(ctx, block, crop); !s)
    return s;
  const size_t m = block.size();
  i64 blocks = 1;
  for (const i64 b : block)
    EVAL_REQUIRE(!__builtin_mul_overflow(blocks, b, &blocks), "block_shape is out of range");
  EVAL_REQUIRE(x.dim(0) % blocks == 0, "the blocks do not divide the batch");
  // [b0, b1, n, h, w, …] to [n, h, b0, w, b1, …].
  Shape cut(block.begin(), block.end());
  cut.push_back(x.dim(0) / blocks);
  Shape result{x.dim(0) / blocks};
  std::vector<i64> order{static_cast<i64>(m)};
  for (size_t i = 0; i < m; ++i) {
    const i64 n = x.shape()[i + 1];
    cut.push_back(n);
    order.insert(order.end(), {static_cast<i64>(m + 1 + i), static_cast<i64>(i)});
    result.push_back(n * block[i]);
  }
  for (size_t d = m + 1; d < x.shape().size(); ++d) {
    order.push_back(static_cast<i64>(d + m));
    cut.push_back(x.shape()[d]);
    result.push_back(x.shape()[d]);
  }
  Tensor out = permute(x.reshaped(cut), order).reshaped(result);
  for (size_t i = 0; i < m; ++i) {
    const i64 left = result[i + 1] - crop[2 * i] - crop[2 * i + 1];
    EVAL_REQUIRE(left >= 0, "the crops are larger than the dim");
    out = slice(out, static_cast<int>(i) + 1, crop[2 * i], 1, left);
  }
  ctx.set(0, std::move(out));
  return {};
}

Status k_dilate(KernelContext &ctx) { // (x, dilations, padding value)
  const Tensor &x = ctx.in(0);
  const Shape step = values_of(ctx.in(1));
  EVAL_REQUIRE(step.size() == x.shape().size() && ctx.in(2).num_elements() == 1 &&
                   ctx.in(2).element() == x.element(),
               "dilations or the padding value do not fit");
  Shape shape;
  for (size_t d = 0; d < step.size(); ++d) {
    i64 n = 0;
    EVAL_REQUIRE(step[d] > 0 && x.shape()[d] > 0 &&
                     !__builtin_mul_overflow(x.shape()[d] - 1, step[d], &n),
                 "a dilation is out of range");
    shape.push_back(n + 1);
  }
  Tensor out = filled(x.element(), shape, &ctx.in(2));
  place(x, out, Shape(shape.size(), 0), step);
  ctx.set(0, std::move(out));
  return {};
}

/// The first `lengths[b]` positions of each batch entry in reverse order.
Status k_reverse_sequence(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int seq = wrap_dim(ctx.integer("seq_dim"), x.rank());
  const int batch = wrap_dim(ctx.integer("batch_dim"), x.rank());
  const std::vector<i64> lengths = values_of(ctx.in(1));
  EVAL_REQUIRE(x.rank() > 1 && seq >= 0 && batch >= 0 && seq != batch &&
                   static_cast<i64>(lengths.size()) == x.dim(batch) &&
                   std::all_of(lengths.begin(), lengths.end(),
                               [&](i64 n) { return n >= 0 && n <= x.dim(seq); }),
               "dims or lengths are out of range");
  std::vector<i64> order{batch, seq};
  for (int d = 0; d < x.rank(); ++d)
    if (d != seq && d != batch)
      order.push_back(d);
  const Tensor rows = permute(x, order);
  const size_t row =
      rows.num_elements() ? rows.num_bytes() / static_cast<size_t>(x.dim(batch) * x.dim(seq)) : 0;
  Tensor turned = Tensor::allocate(x.element(), rows.shape());
  for (i64 b = 0; b < x.dim(batch) && row; ++b)
    for (i64 s = 0; s < x.dim(seq); ++s) {
      const i64 n = lengths[static_cast<size_t>(b)];
      const i64 from = s < n ? n - 1 - s : s;
      std::memcpy(turned.mutable_data() + static_cast<size_t>(b * x.dim(seq) + s) * row,
                  rows.data() + static_cast<size_t>(b * x.dim(seq) + from) * row, row);
    }
  std::vector<i64> back(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    back[static_cast<size_t>(order[d])] = static_cast<i64>(d);
  ctx.set(0, permute(turned, back));
  return {};
}

/// `x` ([…, rows, columns]) with its main diagonals replaced.
Status set_diagonal(KernelContext &ctx, Tensor x, const Tensor &diagonal) {
  const i64 rows = x.dim(x.rank() - 2);
  const i64 columns = x.dim(x.rank() - 1);
  const i64 n = std::min(rows, columns);
  EVAL_REQUIRE(diagonal.element() == x.element() &&
                   diagonal.num_elements() * rows * columns == x.num_elements() * n,
               "the diagonal does not fit");
  Tensor out = gather_strided(x, x.shape(), 0, dense_strides(x.shape()));
  const auto item = static_cast<i64>(x.item_bytes());
  for (i64 i = 0; n && i < diagonal.num_elements(); ++i) {
    const i64 at = i / n * rows * columns + i % n * (columns + 1);
    std::memcpy(out.mutable_data() + at * item, diagonal.data() + i * item,
                static_cast<size_t>(item));
  }
  ctx.set(0, std::move(out));
  return {};
}
Status k_matrix_diag(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() > 0, "needs a dim");
  Shape shape = x.shape();
  shape.push_back(shape.back());
  return set_diagonal(ctx, Tensor::zeros(x.element(), shape), x);
}
Status k_matrix_set_diag(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(0).rank() > 1, "needs matrices");
  return set_diagonal(ctx, ctx.in(0), ctx.in(1));
}

Status k_zeros_like(KernelContext &ctx) {
  ctx.set(0, Tensor::zeros(ctx.in(0).element(), ctx.in(0).shape()));
  return {};
}
Status k_rank(KernelContext &ctx) {
  ctx.set(0, Tensor::scalar_int(ctx.type().element, ctx.in(0).rank()));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle.depth_to_space", k_depth_to_space},
    {"circle.space_to_depth", k_space_to_depth},
    {"circle.space_to_batch_nd", k_space_to_batch},
    {"circle.batch_to_space_nd", k_batch_to_space},
    {"circle.dilate", k_dilate},
    {"circle.reverse_sequence", k_reverse_sequence},
    {"circle.matrix_diag", k_matrix_diag},
    {"circle.matrix_set_diag", k_matrix_set_diag},
    {"circle.zeros_like", k_zeros_like},
    {"circle.rank", k_rank},
};

} // namespace

std::span<const KernelEntry> circle_block_kernels() { return kEntries; }

} // namespace chute::eval

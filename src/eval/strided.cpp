#include "eval/strided.h"

#include "support/parallel.h"

#include <algorithm>
#include <cstring>

namespace chute::eval {

namespace {

struct Box {
  Shape dims;
  Shape from;
  Shape to;
};

Box merge_dims(std::span<const i64> shape, std::span<const i64> src, std::span<const i64> dst) {
  Box b;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1)
      continue;
    if (!b.dims.empty() && b.from.back() == src[d] * shape[d] && b.to.back() == dst[d] * shape[d]) {
      b.dims.back() *= shape[d];
      b.from.back() = src[d];
      b.to.back() = dst[d];
    } else {
      b.dims.push_back(shape[d]);
      b.from.push_back(src[d]);
      b.to.push_back(dst[d]);
    }
  }
  if (b.dims.empty()) {
    b.dims.push_back(1);
    b.from.push_back(1);
    b.to.push_back(1);
  }
  return b;
}

template <class T>
void copy_run(const T *src, i64 from, T *dst, i64 to, i64 n) {
  if (from == 1 && to == 1)
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  else if (from == 0 && to == 1)
    std::fill(dst, dst + n, *src);
  else
    for (i64 i = 0; i < n; ++i)
      dst[i * to] = src[i * from];
}

/// A tile of rows x columns where the source runs along rows: both sides stay in cache.
template <class T>
void copy_plane(const T *src, i64 from_row, i64 from_column, T *dst, i64 to_row, i64 to_column,
                i64 rows, i64 columns) {
  constexpr i64 kTile = 32;
  if (from_row != 1 || from_column == 1 || rows < 4 || columns < 4) {
    for (i64 r = 0; r < rows; ++r)
      copy_run(src + r * from_row, from_column, dst + r * to_row, to_column, columns);
    return;
  }
  for (i64 r0 = 0; r0 < rows; r0 += kTile)
    for (i64 c0 = 0; c0 < columns; c0 += kTile)
      for (i64 r = r0; r < std::min(rows, r0 + kTile); ++r)
        for (i64 c = c0; c < std::min(columns, c0 + kTile); ++c)
          dst[r * to_row + c * to_column] = src[r * from_row + c * from_column];
}

template <class T>
void copy_box(const Box &b, const std::byte *from, std::byte *to) {
  const T *src = reinterpret_cast<const T *>(from);
  T *dst = reinterpret_cast<T *>(to);
  const size_t rank = b.dims.size();
  const size_t column = rank - 1;
  if (rank == 1) {
    parallel_for(b.dims[0], 1 << 16, [&](i64 begin, i64 end) {
      copy_run(src + begin * b.from[0], b.from[0], dst + begin * b.to[0], b.to[0], end - begin);
    });
    return;
  }
  // The plane of a copy is the innermost dim and the one along which the source is dense.
  size_t row = rank - 2;
  if (b.from[column] != 1)
    for (size_t d = 0; d < column; ++d)
      if (b.from[d] == 1)
        row = d;
  i64 planes = 1;
  for (size_t d = 0; d < column; ++d)
    if (d != row)
      planes *= b.dims[d];
  const i64 rows = b.dims[row];
  const i64 columns = b.dims[column];
  const auto plane = [&](i64 p, i64 r0, i64 r1) {
    i64 from_offset = r0 * b.from[row];
    i64 to_offset = r0 * b.to[row];
    for (size_t d = column; d-- > 0;) {
      if (d == row)
        continue;
      from_offset += p % b.dims[d] * b.from[d];
      to_offset += p % b.dims[d] * b.to[d];
      p /= b.dims[d];
    }
    copy_plane(src + from_offset, b.from[row], b.from[column], dst + to_offset, b.to[row],
               b.to[column], r1 - r0, columns);
  };
  if (planes == 1) {
    parallel_for(rows, std::max<i64>(32, 65536 / columns),
                 [&](i64 begin, i64 end) { plane(0, begin, end); });
    return;
  }
  parallel_for(planes, 65536 / std::max<i64>(rows * columns, 1) + 1, [&](i64 begin, i64 end) {
    for (i64 p = begin; p < end; ++p)
      plane(p, 0, rows);
  });
}

struct Wide {
  u64 low;
  u64 high;
};

} // namespace

void copy_strided(size_t item, std::span<const i64> shape, const std::byte *src,
                  std::span<const i64> src_strides, std::byte *dst,
                  std::span<const i64> dst_strides) {
  if (num_elements(shape) == 0)
    return;
  const Box b = merge_dims(shape, src_strides, dst_strides);
  switch (item) {
  case 1: return copy_box<u8>(b, src, dst);
  case 2: return copy_box<u16>(b, src, dst);
  case 4: return copy_box<u32>(b, src, dst);
  case 8: return copy_box<u64>(b, src, dst);
  case 16: return copy_box<Wide>(b, src, dst);
  default: return;
  }
}

Tensor gather_strided(const Tensor &t, Shape shape, i64 offset, std::span<const i64> strides) {
  Tensor out = Tensor::allocate(t.element(), std::move(shape));
  const auto item = t.item_bytes();
  copy_strided(item, out.shape(), t.data() + offset * static_cast<i64>(item), strides,
               out.mutable_data(), dense_strides(out.shape()));
  return out;
}

Tensor permute(const Tensor &t, std::span<const i64> dims) {
  const Shape dense = dense_strides(t.shape());
  Shape shape;
  Shape strides;
  bool moves = false; // extents of 1 may trade places without moving anything
  i64 last = -1;
  for (i64 d : dims) {
    shape.push_back(t.dim(static_cast<int>(d)));
    strides.push_back(dense[static_cast<size_t>(d)]);
    if (shape.back() != 1) {
      moves = moves || d < last;
      last = d;
    }
  }
  if (!moves)
    return t.reshaped(std::move(shape));
  return gather_strided(t, std::move(shape), 0, strides);
}

int wrap_dim(i64 dim, int rank) {
  const i64 n = std::max(rank, 1);
  if (dim < -n || dim >= n)
    return -1;
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

} // namespace chute::eval

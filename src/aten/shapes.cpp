#include "aten/shapes.h"

#include <array>
#include <limits>

namespace chute::aten {

using ir::SymInt;
using ir::SymTable;

std::optional<int> normalize_dim(SymInt dim, int rank) {
  const i64 n = rank == 0 ? 1 : rank;
  if (dim.is_symbolic() || dim.value() < -n || dim.value() >= n)
    return std::nullopt;
  return static_cast<int>(dim.value() < 0 ? dim.value() + n : dim.value());
}

SymInt numel(ir::Context &ctx, DimSpan shape) { return ctx.sym().product(shape); }

bool provably_le(const SymTable &sym, SymInt a, SymInt b) {
  if (a.is_static() && b.is_static())
    return a.value() <= b.value();
  return sym.range(a).max <= sym.range(b).min;
}

namespace {

/// a <= b by the range of their difference, which sees that s - 1 <= s.
bool difference_le(SymTable &sym, SymInt a, SymInt b) {
  return provably_le(sym, a, b) || sym.range(sym.sub(b, a)).min >= 0;
}

} // namespace

SymInt sym_min(SymTable &sym, SymInt a, SymInt b) {
  if (difference_le(sym, a, b))
    return a;
  return difference_le(sym, b, a) ? b : sym.min(a, b);
}

SymInt sym_max(SymTable &sym, SymInt a, SymInt b) {
  if (difference_le(sym, a, b))
    return b;
  return difference_le(sym, b, a) ? a : sym.max(a, b);
}

std::optional<Dims> broadcast(DimSpan a, DimSpan b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Dims out(a.begin(), a.end());
  const size_t skip = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    SymInt &d = out[skip + i];
    if (b[i] == SymInt(1) || d == b[i])
      continue;
    if (d != SymInt(1))
      return std::nullopt;
    d = b[i];
  }
  return out;
}

std::optional<Dims> resolve_view(ir::Context &ctx, DimSpan from, DimSpan sizes) {
  SymTable &sym = ctx.sym();
  Dims out(sizes.begin(), sizes.end());
  SymInt known = 1;
  int missing = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == SymInt(-1)) {
      if (missing >= 0)
        return std::nullopt;
      missing = static_cast<int>(i);
    } else if (sizes[i].is_static() && sizes[i].value() < 0) {
      return std::nullopt;
    } else {
      known = sym.mul(known, sizes[i]);
    }
  }
  const SymInt total = numel(ctx, from);
  if (missing < 0) {
    // Symbolic totals that differ as polynomials may be equal by the program's guards.
    if (total != known && total.is_static() && known.is_static())
      return std::nullopt;
    return out;
  }
  if (const auto q = sym.exact_div(total, known)) {
    out[static_cast<size_t>(missing)] = *q;
    return out;
  }
  if (total.is_static() && known.is_static())
    return std::nullopt;
  out[static_cast<size_t>(missing)] = sym.floordiv(total, known);
  return out;
}

namespace {

/// in + before + after - dilation * (kernel - 1) - 1: how far the window can travel.
SymInt travel(SymTable &sym, SymInt in, SymInt before, SymInt after, SymInt dilation,
              SymInt kernel) {
  const SymInt padded = sym.add(sym.add(in, before), after);
  return sym.sub(sym.sub(padded, sym.mul(dilation, sym.sub(kernel, 1))), 1);
}

} // namespace

SymInt window_output(SymTable &sym, SymInt in, SymInt pad_before, SymInt pad_after, SymInt dilation,
                     SymInt kernel, SymInt stride) {
  const SymInt t = travel(sym, in, pad_before, pad_after, dilation, kernel);
  return sym.add(sym.floordiv(t, stride), 1);
}

SymInt window_output_ceil(SymTable &sym, SymInt in, SymInt pad_before, SymInt pad_after,
                          SymInt dilation, SymInt kernel, SymInt stride) {
  const SymInt t = travel(sym, in, pad_before, pad_after, dilation, kernel);
  const SymInt out = sym.add(sym.floordiv(sym.sub(sym.add(t, stride), 1), stride), 1);
  const SymInt last_start = sym.mul(sym.sub(out, 1), stride);
  const SymInt limit = sym.add(in, pad_before);
  const SymInt in_padding = sym.apply(ir::SymOp::Le, std::array{limit, last_start});
  return sym.apply(ir::SymOp::Where, std::array{in_padding, sym.sub(out, 1), out});
}

SliceRange resolve_slice(SymTable &sym, SymInt size, std::optional<SymInt> start,
                         std::optional<SymInt> end, SymInt step) {
  const auto bound = [&](std::optional<SymInt> b, SymInt absent) {
    if (!b)
      return absent;
    SymInt v = *b;
    // Python's "to the end" arrives as sys.maxsize, beyond any size.
    if (v.is_static() && v.value() == std::numeric_limits<i64>::max())
      return size;
    if (v.is_static() ? v.value() < 0 : sym.range(v).max < 0)
      v = sym.add(v, size);
    return sym_min(sym, sym_max(sym, v, 0), size);
  };
  SliceRange r;
  r.start = bound(start, 0);
  r.end = bound(end, size);
  if (r.start != SymInt(0)) // a bound is never negative, which a range over min() does not show
    r.end = sym_max(sym, r.end, r.start);
  r.length = sym.ceildiv(sym.sub(r.end, r.start), step);
  return r;
}

} // namespace chute::aten

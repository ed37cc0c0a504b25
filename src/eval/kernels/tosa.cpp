// Kernels of the TOSA dialect: elementwise operators, reductions, movement, rescaling. Floats
// compute in f64 and are rounded once; integers are exact.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace chute::eval {

namespace {

/// Whether a kernel has a function for floats (or integers); nullptr stands for none.
template <auto f>
constexpr bool kThere = !std::is_null_pointer_v<std::remove_cv_t<decltype(f)>>;

bool is_real(const Tensor &t) { return ir::is_float(t.element()); }

Status mapped(KernelContext &ctx, bool fits) {
  EVAL_REQUIRE(fits, "the operands do not broadcast to the result");
  return {};
}

template <auto real, auto whole = nullptr>
Status unary(KernelContext &ctx) {
  const Tensor *in[] = {&ctx.in(0)};
  if (is_real(ctx.in(0)))
    return mapped(ctx,
                  map_elements<double>(in, ctx.out(), [](const double *const *a, double *o, i64 n) {
                    for (i64 i = 0; i < n; ++i)
                      o[i] = real(a[0][i]);
                  }));
  if constexpr (kThere<whole>)
    return mapped(ctx, map_elements<i64>(in, ctx.out(), [](const i64 *const *a, i64 *o, i64 n) {
                    for (i64 i = 0; i < n; ++i)
                      o[i] = whole(a[0][i]);
                  }));
  return ctx.fail("this element type is not evaluated");
}

template <auto real, auto whole>
Status binary(KernelContext &ctx) {
  const Tensor *in[] = {&ctx.in(0), &ctx.in(1)};
  if constexpr (kThere<real>)
    if (is_real(ctx.in(0)))
      return mapped(
          ctx, map_elements<double>(in, ctx.out(), [](const double *const *a, double *o, i64 n) {
            for (i64 i = 0; i < n; ++i)
              o[i] = real(a[0][i], a[1][i]);
          }));
  if constexpr (kThere<whole>)
    if (!is_real(ctx.in(0)))
      return mapped(ctx, map_elements<i64>(in, ctx.out(), [](const i64 *const *a, i64 *o, i64 n) {
                      for (i64 i = 0; i < n; ++i)
                        o[i] = whole(a[0][i], a[1][i]);
                    }));
  return ctx.fail("this element type is not evaluated");
}

template <class T>
T greater_of(T x, T y) {
  return x != x ? x : y != y ? y : x > y ? x : y;
}
template <class T>
T smaller_of(T x, T y) {
  return x != x ? x : y != y ? y : x < y ? x : y;
}

Status k_mul(KernelContext &ctx) {
  const i64 shift = ctx.in(2).num_elements() == 1 ? ctx.in(2).int_at(0) : -1;
  EVAL_REQUIRE(shift >= 0 && shift < 63, "the shift is out of range");
  if (shift == 0)
    return binary<[](double x, double y) { return x * y; },
                  [](i64 x, i64 y) {
                    return static_cast<i64>(static_cast<u64>(x) * static_cast<u64>(y));
                  }>(ctx);
  const Tensor *in[] = {&ctx.in(0), &ctx.in(1)};
  return mapped(ctx, map_elements<i64>(in, ctx.out(), [=](const i64 *const *a, i64 *o, i64 n) {
                  for (i64 i = 0; i < n; ++i)
                    o[i] = (a[0][i] * a[1][i] + (i64{1} << (shift - 1))) >> shift;
                }));
}

Status k_negate(KernelContext &ctx) {
  const Tensor *in[] = {&ctx.in(0)};
  if (is_real(ctx.in(0)))
    return unary<[](double x) { return -x; }>(ctx);
  const i64 zp = ctx.in(1).int_at(0), out_zp = ctx.in(2).int_at(0);
  const int bits = ir::element_bits(ctx.type().element);
  const i64 high = (i64{1} << (bits - 1)) - 1;
  return mapped(ctx, map_elements<i64>(in, ctx.out(), [=](const i64 *const *a, i64 *o, i64 n) {
                  for (i64 i = 0; i < n; ++i)
                    o[i] = std::clamp(zp - a[0][i] + out_zp, -high - 1, high);
                }));
}

Status k_clamp(KernelContext &ctx) {
  const Tensor *in[] = {&ctx.in(0)};
  if (is_real(ctx.in(0))) {
    const double low = ctx.real("min_val"), high = ctx.real("max_val");
    return mapped(
        ctx, map_elements<double>(in, ctx.out(), [=](const double *const *a, double *o, i64 n) {
          for (i64 i = 0; i < n; ++i)
            o[i] = a[0][i] < low ? low : a[0][i] > high ? high : a[0][i];
        }));
  }
  const i64 low = ctx.integer("min_val"), high = ctx.integer("max_val");
  return mapped(ctx, map_elements<i64>(in, ctx.out(), [=](const i64 *const *a, i64 *o, i64 n) {
                  for (i64 i = 0; i < n; ++i)
                    o[i] = std::clamp(a[0][i], low, std::max(low, high));
                }));
}

template <class C>
Status select_as(KernelContext &ctx) {
  const Tensor *in[] = {&ctx.in(0), &ctx.in(1), &ctx.in(2)};
  return mapped(ctx, map_elements<C>(in, ctx.out(), [](const C *const *a, C *o, i64 n) {
                  for (i64 i = 0; i < n; ++i)
                    o[i] = a[0][i] != C{} ? a[1][i] : a[2][i];
                }));
}
Status k_select(KernelContext &ctx) {
  return is_real(ctx.in(1)) ? select_as<double>(ctx) : select_as<i64>(ctx);
}

/// Floats become integers by rounding half to even, kept inside the type.
Status k_cast(KernelContext &ctx) {
  const ElementType to = ctx.type().element;
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(computable(x.element()) && computable(to), "this element type is not evaluated");
  if (!is_real(x) || ir::is_float(to)) {
    ctx.set(0, cast(x, to));
    return {};
  }
  EVAL_REQUIRE(ir::is_integer(to), "a float does not become a bool");
  const int bits = ir::element_bits(to);
  const double high = std::ldexp(1.0, bits - 1) - 1;
  const Tensor *in[] = {&x};
  return mapped(
      ctx, map_elements<double>(in, ctx.out(), [=](const double *const *a, double *o, i64 n) {
        for (i64 i = 0; i < n; ++i)
          o[i] = a[0][i] != a[0][i] ? 0 : std::clamp(std::nearbyint(a[0][i]), -high - 1, high);
      }));
}

/// Folds one axis; f(accumulator, element).
template <class C, class F>
Status fold_axis(KernelContext &ctx, F f) {
  const Tensor &x = ctx.in(0);
  const int axis = wrap_dim(ctx.integer("axis"), x.rank());
  EVAL_REQUIRE(axis >= 0 && x.rank() > 0 && x.dim(axis) > 0, "the axis is out of range or empty");
  std::vector<C> v(static_cast<size_t>(x.num_elements()));
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  const i64 n = x.dim(axis);
  const i64 inner = num_elements(std::span(x.shape()).subspan(static_cast<size_t>(axis) + 1));
  std::vector<C> out(v.size() / static_cast<size_t>(n));
  for (size_t o = 0; o < out.size(); ++o) {
    const size_t base = o / static_cast<size_t>(inner) * static_cast<size_t>(inner * n) +
                        o % static_cast<size_t>(inner);
    C sum = v[base];
    for (i64 k = 1; k < n; ++k)
      sum = f(sum, v[base + static_cast<size_t>(k * inner)]);
    out[o] = sum;
  }
  Tensor &t = ctx.out();
  EVAL_REQUIRE(t.num_elements() == static_cast<i64>(out.size()), "the result has a wrong shape");
  store_run(t.element(), out.data(), t.num_elements(), t.mutable_data());
  return {};
}

template <auto real, auto whole>
Status reduction(KernelContext &ctx) {
  return is_real(ctx.in(0)) ? fold_axis<double>(ctx, real) : fold_axis<i64>(ctx, whole);
}

Status k_argmax(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int axis = wrap_dim(ctx.integer("axis"), x.rank());
  EVAL_REQUIRE(axis >= 0 && x.rank() > 0 && x.dim(axis) > 0, "the axis is out of range or empty");
  std::vector<double> v(static_cast<size_t>(x.num_elements()));
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  const auto n = static_cast<size_t>(x.dim(axis));
  const auto inner = static_cast<size_t>(
      num_elements(std::span(x.shape()).subspan(static_cast<size_t>(axis) + 1)));
  Tensor &t = ctx.out();
  std::vector<i64> out(v.size() / n);
  EVAL_REQUIRE(t.num_elements() == static_cast<i64>(out.size()), "the result has a wrong shape");
  for (size_t o = 0; o < out.size(); ++o) {
    const size_t base = o / inner * inner * n + o % inner;
    for (size_t k = 1; k < n; ++k) {
      const double best = v[base + static_cast<size_t>(out[o]) * inner];
      const double here = v[base + k * inner];
      if (best == best && (here != here || here > best))
        out[o] = static_cast<i64>(k);
    }
  }
  store_run(t.element(), out.data(), t.num_elements(), t.mutable_data());
  return {};
}

Status k_identity(KernelContext &ctx) {
  ctx.set(0, ctx.in(0));
  return {};
}
Status k_reshape(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.type().known() && num_elements(ctx.type().shape) == ctx.in(0).num_elements(),
               "the shape holds another number of elements");
  ctx.set(0, ctx.in(0).reshaped(ctx.type().shape));
  return {};
}
Status k_transpose(KernelContext &ctx) {
  const std::vector<i64> perms = ctx.integers("perms");
  std::vector<i64> sorted = perms;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    EVAL_REQUIRE(sorted[i] == static_cast<i64>(i), "perms is no permutation");
  EVAL_REQUIRE(static_cast<int>(perms.size()) == ctx.in(0).rank(), "perms has a wrong length");
  ctx.set(0, permute(ctx.in(0), perms));
  return {};
}
Status k_concat(KernelContext &ctx) {
  std::vector<Tensor> pieces;
  for (const Tensor *t : ctx.list(0))
    pieces.push_back(*t);
  EVAL_REQUIRE(!pieces.empty(), "nothing to join");
  return concatenate(ctx, pieces, wrap_dim(ctx.integer("axis"), pieces[0].rank()));
}
Status k_pad(KernelContext &ctx) {
  const std::vector<i64> rows = values_of(ctx.in(1)); // (before, after) from the first dim
  const auto rank = static_cast<size_t>(ctx.in(0).rank());
  EVAL_REQUIRE(rows.size() == 2 * rank && ctx.in(2).num_elements() == 1,
               "the padding or its value has a wrong size");
  std::vector<i64> pad;
  for (size_t d = rank; d-- > 0;)
    pad.insert(pad.end(), {rows[2 * d], rows[2 * d + 1]});
  return pad_tensor(ctx, pad, PadMode::Constant, ctx.in(2).at(0));
}
Status k_slice(KernelContext &ctx) {
  Tensor x = ctx.in(0);
  const std::vector<i64> start = values_of(ctx.in(1)), size = values_of(ctx.in(2));
  EVAL_REQUIRE(static_cast<int>(start.size()) == x.rank() && size.size() == start.size(),
               "start or size have a wrong length");
  for (size_t d = 0; d < start.size(); ++d) {
    EVAL_REQUIRE(start[d] >= 0 && size[d] >= 0 && start[d] + size[d] <= x.shape()[d],
                 "the slice is out of range");
    x = slice(x, static_cast<int>(d), start[d], 1, size[d]);
  }
  ctx.set(0, std::move(x));
  return {};
}
Status k_reverse(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const int axis = wrap_dim(ctx.integer("axis"), x.rank());
  EVAL_REQUIRE(axis >= 0 && x.rank() > 0, "the axis is out of range");
  Shape strides = dense_strides(x.shape());
  i64 &step = strides[static_cast<size_t>(axis)];
  const i64 offset = x.num_elements() ? (x.dim(axis) - 1) * step : 0;
  step = -step;
  ctx.set(0, gather_strided(x, x.shape(), offset, strides));
  return {};
}
Status k_tile(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> times = values_of(ctx.in(1));
  EVAL_REQUIRE(times.size() == x.shape().size() && ctx.type().known(),
               "multiples has a wrong length");
  const Shape dense = dense_strides(x.shape());
  Shape shape, strides;
  for (size_t d = 0; d < times.size(); ++d) {
    EVAL_REQUIRE(times[d] >= 0 && times[d] * x.shape()[d] == ctx.type().shape[d],
                 "multiples do not give the result's shape");
    shape.insert(shape.end(), {times[d], x.shape()[d]});
    strides.insert(strides.end(), {0, dense[d]});
  }
  ctx.set(0, gather_strided(x, shape, 0, strides).reshaped(ctx.type().shape));
  return {};
}

/// Rows [n, w] of values [N, K, C], which are C elements each.
bool row_of(const Tensor &values, const std::vector<i64> &index, i64 n, i64 w, i64 width,
            i64 &row) {
  const i64 k = index[static_cast<size_t>(n * width + w)];
  row = n * values.dim(1) + k;
  return k >= 0 && k < values.dim(1);
}
Status k_gather(KernelContext &ctx) {
  const Tensor &v = ctx.in(0), &ix = ctx.in(1);
  EVAL_REQUIRE(v.rank() == 3 && ix.rank() == 2 && ix.dim(0) == v.dim(0), "the shapes do not fit");
  const std::vector<i64> index = values_of(ix);
  const auto bytes = static_cast<size_t>(v.dim(2)) * v.item_bytes();
  Tensor out = Tensor::allocate(v.element(), {v.dim(0), ix.dim(1), v.dim(2)});
  for (i64 n = 0; n < v.dim(0); ++n)
    for (i64 w = 0; w < ix.dim(1); ++w) {
      i64 row = 0;
      EVAL_REQUIRE(row_of(v, index, n, w, ix.dim(1), row), "an index is out of range");
      std::memcpy(out.mutable_data() + static_cast<size_t>(n * ix.dim(1) + w) * bytes,
                  v.data() + static_cast<size_t>(row) * bytes, bytes);
    }
  ctx.set(0, std::move(out));
  return {};
}
Status k_scatter(KernelContext &ctx) {
  const Tensor &v = ctx.in(0), &ix = ctx.in(1), &in = ctx.in(2);
  EVAL_REQUIRE(v.rank() == 3 && ix.rank() == 2 && in.rank() == 3 && ix.dim(0) == v.dim(0) &&
                   in.shape() == (Shape{v.dim(0), ix.dim(1), v.dim(2)}) &&
                   in.element() == v.element(),
               "the shapes do not fit");
  const std::vector<i64> index = values_of(ix);
  const auto bytes = static_cast<size_t>(v.dim(2)) * v.item_bytes();
  Tensor out = Tensor::allocate(v.element(), v.shape());
  std::memcpy(out.mutable_data(), v.data(), v.num_bytes());
  for (i64 n = 0; n < v.dim(0); ++n)
    for (i64 w = 0; w < ix.dim(1); ++w) {
      i64 row = 0;
      EVAL_REQUIRE(row_of(v, index, n, w, ix.dim(1), row), "an index is out of range");
      std::memcpy(out.mutable_data() + static_cast<size_t>(row) * bytes,
                  in.data() + static_cast<size_t>(n * ix.dim(1) + w) * bytes, bytes);
    }
  ctx.set(0, std::move(out));
  return {};
}

/// ((x - in_zp) * multiplier, rounded shift) + out_zp, kept inside the type.
Status k_rescale(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> multiplier = values_of(ctx.in(1)), shift = values_of(ctx.in(2));
  const bool channels = ctx.boolean("per_channel");
  const i64 n = x.num_elements();
  const i64 last = x.rank() ? x.dim(x.rank() - 1) : 1;
  EVAL_REQUIRE(multiplier.size() == shift.size() &&
                   multiplier.size() == static_cast<size_t>(channels ? last : 1),
               "multiplier and shift have a wrong length");
  EVAL_REQUIRE(!ctx.boolean("input_unsigned") && !ctx.boolean("output_unsigned"),
               "unsigned rescaling is not evaluated");
  const std::string_view mode = ctx.text("rounding_mode");
  EVAL_REQUIRE(mode == "SINGLE_ROUND" || mode == "DOUBLE_ROUND",
               "inexact rounding is not evaluated");
  const bool twice = mode == "DOUBLE_ROUND" && ctx.boolean("scale32");
  const i64 in_zp = ctx.in(3).int_at(0), out_zp = ctx.in(4).int_at(0);
  const i64 high = (i64{1} << (ir::element_bits(ctx.type().element) - 1)) - 1;
  std::vector<i64> v(static_cast<size_t>(n));
  load_run(x.element(), x.data(), n, v.data());
  for (i64 i = 0; i < n; ++i) {
    const size_t c = channels ? static_cast<size_t>(i % last) : 0;
    EVAL_REQUIRE(shift[c] >= 1 && shift[c] <= 62, "a shift is out of range");
    i64 &value = v[static_cast<size_t>(i)];
    value -= in_zp;
    __int128 round = __int128{1} << (shift[c] - 1);
    if (twice && shift[c] > 31)
      round += value >= 0 ? (__int128{1} << 30) : -(__int128{1} << 30);
    const __int128 product = static_cast<__int128>(value) * multiplier[c] + round;
    value = static_cast<i64>(std::clamp<__int128>((product >> shift[c]) + out_zp, -high - 1, high));
  }
  Tensor &t = ctx.out();
  EVAL_REQUIRE(t.num_elements() == n, "the result has a wrong shape");
  store_run(t.element(), v.data(), n, t.mutable_data());
  return {};
}

/// 256 entries for 8 bits; 513 points with linear interpolation for 16 bits.
Status k_table(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> table = values_of(ctx.in(1));
  const bool narrow = x.element() == ElementType::I8;
  EVAL_REQUIRE(table.size() == (narrow ? 256u : 513u), "the table has a wrong size");
  const i64 n = x.num_elements();
  std::vector<i64> v(static_cast<size_t>(n));
  load_run(x.element(), x.data(), n, v.data());
  for (i64 &value : v) {
    if (narrow) {
      value = table[static_cast<size_t>(value + 128)];
      continue;
    }
    const i64 at = value + 32768;
    const auto index = static_cast<size_t>(at >> 7);
    value = (table[index] << 7) + (table[index + 1] - table[index]) * (at & 127);
  }
  Tensor &t = ctx.out();
  EVAL_REQUIRE(t.num_elements() == n, "the result has a wrong shape");
  store_run(t.element(), v.data(), n, t.mutable_data());
  return {};
}

i64 wrapped_add(i64 x, i64 y) {
  return static_cast<i64>(static_cast<u64>(x) + static_cast<u64>(y));
}
i64 wrapped_sub(i64 x, i64 y) {
  return static_cast<i64>(static_cast<u64>(x) - static_cast<u64>(y));
}
i64 divided(i64 x, i64 y) { return y == 0 ? 0 : y == -1 ? -x : x / y; }
bool in_word(i64 s) { return s >= 0 && s < 64; }
i64 left(i64 x, i64 s) { return in_word(s) ? static_cast<i64>(static_cast<u64>(x) << s) : 0; }
/// Of a number of so many bits, which i64 holds with its sign.
template <int bits>
i64 right(i64 x, i64 s) {
  const u64 word = static_cast<u64>(x) & (~u64{0} >> (64 - bits));
  return in_word(s) ? static_cast<i64>(word >> s) : 0;
}
Status k_right(KernelContext &ctx) {
  switch (ctx.in(0).element()) {
  case ElementType::I8: return binary<nullptr, right<8>>(ctx);
  case ElementType::I16: return binary<nullptr, right<16>>(ctx);
  case ElementType::I32: return binary<nullptr, right<32>>(ctx);
  default: return binary<nullptr, right<64>>(ctx);
  }
}
i64 arithmetic_right(i64 x, i64 s) { return x >> std::clamp<i64>(s, 0, 63); }
i64 leading_zeros(i64 x) { return std::countl_zero(static_cast<u32>(static_cast<i32>(x))); }

constexpr KernelEntry kEntries[] = {
    {"tosa.add", binary<[](double x, double y) { return x + y; }, wrapped_add>},
    {"tosa.sub", binary<[](double x, double y) { return x - y; }, wrapped_sub>},
    {"tosa.mul", k_mul},
    {"tosa.intdiv", binary<nullptr, divided>},
    {"tosa.pow", binary<[](double x, double y) { return std::pow(x, y); }, nullptr>},
    {"tosa.maximum", binary<greater_of<double>, greater_of<i64>>},
    {"tosa.minimum", binary<smaller_of<double>, smaller_of<i64>>},
    {"tosa.bitwise_and", binary<nullptr, [](i64 x, i64 y) { return x & y; }>},
    {"tosa.bitwise_or", binary<nullptr, [](i64 x, i64 y) { return x | y; }>},
    {"tosa.bitwise_xor", binary<nullptr, [](i64 x, i64 y) { return x ^ y; }>},
    {"tosa.logical_and", binary<nullptr, [](i64 x, i64 y) { return x & y; }>},
    {"tosa.logical_or", binary<nullptr, [](i64 x, i64 y) { return x | y; }>},
    {"tosa.logical_xor", binary<nullptr, [](i64 x, i64 y) { return x ^ y; }>},
    {"tosa.logical_left_shift", binary<nullptr, left>},
    {"tosa.logical_right_shift", k_right},
    {"tosa.arithmetic_right_shift", binary<nullptr, arithmetic_right>},
    {"tosa.equal", binary<[](double x, double y) -> double { return x == y; },
                          [](i64 x, i64 y) -> i64 { return x == y; }>},
    {"tosa.greater", binary<[](double x, double y) -> double { return y < x; },
                            [](i64 x, i64 y) -> i64 { return y < x; }>},
    {"tosa.greater_equal", binary<[](double x, double y) -> double { return y <= x; },
                                  [](i64 x, i64 y) -> i64 { return y <= x; }>},
    {"tosa.select", k_select},
    {"tosa.abs",
     unary<[](double x) { return std::fabs(x); }, [](i64 x) { return x < 0 ? -x : x; }>},
    {"tosa.bitwise_not", unary<[](double x) { return x; }, [](i64 x) { return ~x; }>},
    {"tosa.clz", unary<[](double x) { return x; }, leading_zeros>},
    {"tosa.logical_not", unary<[](double x) { return x; }, [](i64 x) { return i64{x == 0}; }>},
    {"tosa.erf", unary<[](double x) { return std::erf(x); }>},
    {"tosa.sigmoid", unary<[](double x) { return 1 / (1 + std::exp(-x)); }>},
    {"tosa.tanh", unary<[](double x) { return std::tanh(x); }>},
    {"tosa.ceil", unary<[](double x) { return std::ceil(x); }>},
    {"tosa.cos", unary<[](double x) { return std::cos(x); }>},
    {"tosa.exp", unary<[](double x) { return std::exp(x); }>},
    {"tosa.floor", unary<[](double x) { return std::floor(x); }>},
    {"tosa.log", unary<[](double x) { return std::log(x); }>},
    {"tosa.reciprocal", unary<[](double x) { return 1 / x; }>},
    {"tosa.rsqrt", unary<[](double x) { return 1 / std::sqrt(x); }>},
    {"tosa.sin", unary<[](double x) { return std::sin(x); }>},
    {"tosa.negate", k_negate},
    {"tosa.clamp", k_clamp},
    {"tosa.cast", k_cast},
    {"tosa.identity", k_identity},
    {"tosa.reduce_sum", reduction<[](double x, double y) { return x + y; }, wrapped_add>},
    {"tosa.reduce_product",
     reduction<[](double x, double y) { return x * y; }, [](i64 x, i64 y) { return x * y; }>},
    {"tosa.reduce_max", reduction<greater_of<double>, greater_of<i64>>},
    {"tosa.reduce_min", reduction<smaller_of<double>, smaller_of<i64>>},
    {"tosa.reduce_any", reduction<greater_of<double>, [](i64 x, i64 y) { return x | y; }>},
    {"tosa.reduce_all", reduction<smaller_of<double>, [](i64 x, i64 y) { return x & y; }>},
    {"tosa.argmax", k_argmax},
    {"tosa.reshape", k_reshape},
    {"tosa.transpose", k_transpose},
    {"tosa.concat", k_concat},
    {"tosa.pad", k_pad},
    {"tosa.slice", k_slice},
    {"tosa.reverse", k_reverse},
    {"tosa.tile", k_tile},
    {"tosa.gather", k_gather},
    {"tosa.scatter", k_scatter},
    {"tosa.rescale", k_rescale},
    {"tosa.table", k_table},
};

} // namespace

std::span<const KernelEntry> tosa_kernels() { return kEntries; }

} // namespace chute::eval

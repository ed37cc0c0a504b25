#include "quant/params.h"

#include "ir/element_convert.h"
#include "support/check.h"
#include "support/parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace chute::quant {

namespace {

template <class T>
constexpr Range whole() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

/// Runs of elements that share a scale: `channels` of them, each `inner` long, repeated.
struct Channels {
  size_t count = 1;
  size_t inner = 1;
};

Channels channels_of(ir::Type t, size_t elements) {
  const Quantization &q = *t.quant();
  if (q.kind != ir::QuantKind::PerChannel)
    return {1, elements};
  size_t inner = 1;
  for (int d = q.axis + 1; d < t.rank(); ++d)
    inner *= static_cast<size_t>(t.dim(d).value());
  return {q.scales.size(), inner};
}

/// Rounds to even by the carry of an addition: exact for |x| < 2^22, which clamping has ensured.
float round_small(float x) {
  constexpr float kShift = 12582912.0f; // 1.5 * 2^23
  return (x + kShift) - kShift;
}

/// One run with one scale to integers of up to 16 bits. The bounds are whole numbers, so clamping
/// before rounding gives what clamping after it gives, and keeps the loop free of branches.
template <class T>
void quantize_run(const float *from, T *to, size_t n, float scale, i64 zero_point, Range r) {
  const float inverse = 1.0f / scale;
  const auto low = static_cast<float>(r.min - zero_point);
  const auto high = static_cast<float>(r.max - zero_point);
  const auto zero = static_cast<i32>(zero_point);
  for (size_t i = 0; i < n; ++i) {
    const float x = from[i] * inverse;
    // Comparisons in this order send NaN to the lower bound, as PyTorch's clamp of its integers.
    const float c = x > low ? (x < high ? x : high) : low;
    to[i] = static_cast<T>(static_cast<i32>(round_small(c)) + zero);
  }
}

template <class T>
void quantize_wide_run(const float *from, T *to, size_t n, float scale, i64 zero_point, Range r) {
  const double inverse = 1.0 / static_cast<double>(scale);
  const auto low = static_cast<double>(r.min), high = static_cast<double>(r.max);
  for (size_t i = 0; i < n; ++i) {
    const double q =
        std::nearbyint(static_cast<double>(from[i]) * inverse) + static_cast<double>(zero_point);
    // 2^63 is no i64: the last double below it bounds the conversion.
    to[i] = !(q > low)  ? static_cast<T>(r.min)
            : q >= high ? static_cast<T>(r.max)
                        : static_cast<T>(q);
  }
}

template <class T>
void quantize_all(std::span<const float> values, std::byte *out, ir::Type to, Range r) {
  const Quantization &q = *to.quant();
  const Channels ch = channels_of(to, values.size());
  T *target = reinterpret_cast<T *>(out);
  if (ch.inner == 0 || ch.count == 0)
    return;
  // Each number is stored by itself, so any cut gives the same bytes; runs of one scale stay whole
  // loops inside of a piece.
  constexpr i64 kGrain = i64{1} << 16;
  parallel_for(static_cast<i64>(values.size()), kGrain, [&](i64 begin, i64 end) {
    for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end);) {
      const size_t run = at / ch.inner, c = run % ch.count;
      const size_t n = std::min((run + 1) * ch.inner, static_cast<size_t>(end)) - at;
      if constexpr (sizeof(T) <= 2)
        quantize_run(values.data() + at, target + at, n, q.scales[c], q.zero_points[c], r);
      else
        quantize_wide_run(values.data() + at, target + at, n, q.scales[c], q.zero_points[c], r);
      at += n;
    }
  });
}

bool has_reals(const ir::Constant &c) {
  return c.has_data && (ir::is_float(c.type.element()) || is_affine(c.type));
}

} // namespace

std::optional<Range> range_of(ElementType t) {
  switch (t) {
  case ElementType::U4: return Range{0, 15};
  case ElementType::I4: return Range{-8, 7};
  case ElementType::U8: return whole<u8>();
  case ElementType::I8: return whole<i8>();
  case ElementType::U16: return whole<u16>();
  case ElementType::I16: return whole<i16>();
  case ElementType::I32: return whole<i32>();
  case ElementType::I64: return whole<i64>();
  default: return std::nullopt;
  }
}

std::optional<ElementType> storage_for(Range r) {
  constexpr std::array kCandidates{ElementType::U4, ElementType::I4,  ElementType::U8,
                                   ElementType::I8, ElementType::U16, ElementType::I16,
                                   ElementType::I32};
  for (ElementType t : kCandidates)
    if (range_of(t)->holds(r))
      return t;
  return std::nullopt;
}

const Quantization *per_tensor(ir::Context &ctx, float scale, i64 zero_point) {
  Quantization q;
  q.scales = std::span(&scale, 1);
  q.zero_points = std::span(&zero_point, 1);
  return ctx.quantization(q);
}

ir::Type stored_type(ir::Context &ctx, ir::Type real, ElementType storage, const Quantization *q) {
  return ctx.tensor_type(storage, real.shape(), q);
}

std::vector<float> real_values(const ir::Constant &c) {
  std::vector<float> out;
  if (!has_reals(c))
    return out;
  const auto n = static_cast<size_t>(c.num_elements());
  out.resize(n);
  const ElementType e = c.type.element();
  if (e == ElementType::F32) {
    c.copy_dense(reinterpret_cast<std::byte *>(out.data()));
    return out;
  }
  std::vector<std::byte> bytes(c.dense_bytes());
  c.copy_dense(bytes.data());
  const auto item = static_cast<size_t>(ir::element_bytes(e));
  if (ir::is_float(e)) {
    for (size_t i = 0; i < n; ++i)
      out[i] = static_cast<float>(ir::load_element(e, bytes.data() + i * item));
    return out;
  }
  const Quantization &q = *c.type.quant();
  const Channels ch = channels_of(c.type, n);
  for (size_t i = 0; i < n; ++i) {
    const size_t channel = ch.count == 1 ? 0 : i / ch.inner % ch.count;
    const i64 stored = ir::load_element_int(e, bytes.data() + i * item);
    out[i] = static_cast<float>(stored - q.zero_points[channel]) * q.scales[channel];
  }
  return out;
}

const ir::Constant *quantize_values(ir::Graph &graph, std::span<const float> values, ir::Type to,
                                    std::optional<Range> clamp) {
  CHUTE_CHECK(is_affine(to) && static_cast<size_t>(to.num_elements()) == values.size(),
              "one number per element of an affine type");
  const Range r = clamp.value_or(*range_of(to.element()));
  std::byte *out = nullptr;
  const ir::Constant *c = graph.add_buffer(to, &out);
  switch (to.element()) {
  case ElementType::U4:
  case ElementType::U8: quantize_all<u8>(values, out, to, r); break;
  case ElementType::I4:
  case ElementType::I8: quantize_all<i8>(values, out, to, r); break;
  case ElementType::U16: quantize_all<u16>(values, out, to, r); break;
  case ElementType::I16: quantize_all<i16>(values, out, to, r); break;
  case ElementType::I32: quantize_all<i32>(values, out, to, r); break;
  case ElementType::I64: quantize_all<i64>(values, out, to, r); break;
  default: CHUTE_CHECK(false, "an affine type has integers");
  }
  return c;
}

const ir::Constant *quantize_constant(ir::Graph &graph, const ir::Constant &c, ir::Type to,
                                      std::optional<Range> clamp) {
  if (!has_reals(c))
    return nullptr;
  const bool aligned = reinterpret_cast<uintptr_t>(c.data) % alignof(float) == 0;
  if (c.type.element() == ElementType::F32 && c.is_dense() && aligned)
    return quantize_values(
        graph, {reinterpret_cast<const float *>(c.data), static_cast<size_t>(c.num_elements())}, to,
        clamp);
  return quantize_values(graph, real_values(c), to, clamp);
}

const ir::Constant *dequantize_constant(ir::Graph &graph, const ir::Constant &c) {
  if (!has_reals(c))
    return nullptr;
  const std::vector<float> values = real_values(c);
  const ir::Type type = graph.context().tensor_type(ElementType::F32, c.type.shape());
  return graph.add_copy(type, std::as_bytes(std::span(values)));
}

std::optional<Fit> fit(std::span<const float> values, ElementType storage) {
  if (storage != ElementType::U8 && storage != ElementType::I8 && storage != ElementType::I16)
    return std::nullopt;
  double low = 0, high = 0;
  for (float v : values) {
    if (!std::isfinite(v))
      return std::nullopt;
    low = std::min(low, static_cast<double>(v));
    high = std::max(high, static_cast<double>(v));
  }
  Fit f;
  f.bound = std::max(-low, high);
  if (f.bound == 0)
    return f;
  Range r = *range_of(storage);
  if (storage == ElementType::U8) {
    f.zero_point = low == 0 ? 0 : high == 0 ? 255 : 128;
    const double steps = low == 0 || high == 0 ? 255 : 127;
    f.scale = static_cast<float>(f.bound / steps);
  } else {
    f.scale = static_cast<float>(f.bound / static_cast<double>(r.max));
  }
  if (!(f.scale >= std::numeric_limits<float>::min()))
    return std::nullopt;
  // The largest float is stored too, though f32 rounds its product up beyond all numbers.
  while (!std::isfinite(f.scale * static_cast<float>(std::max(r.max, f.zero_point))))
    f.scale = std::nextafter(f.scale, 0.0f);
  const double scale = f.scale;
  for (float v : values) {
    const double stored = std::clamp(std::nearbyint(v / scale) + static_cast<double>(f.zero_point),
                                     static_cast<double>(r.min), static_cast<double>(r.max));
    f.error = std::max(f.error, std::abs((stored - static_cast<double>(f.zero_point)) * scale - v));
  }
  return f;
}

const Quantization *widened(ir::Context &ctx, ir::Type from, ElementType to) {
  const std::optional<Range> source = range_of(from.element()), target = range_of(to);
  if (!is_per_tensor(from) || !source || !target)
    return nullptr;
  const i64 zero = from.quant()->zero_points[0];
  // i16 tensors are symmetric by convention; of 8 bits, i8 is u8 moved by 128.
  const bool same_width = target->max - target->min == source->max - source->min;
  const i64 moved = same_width || target->min == 0 ? zero + target->min - source->min : 0;
  const Range stored{source->min - zero + moved, source->max - zero + moved};
  return target->holds(stored) ? per_tensor(ctx, from.quant()->scales[0], moved) : nullptr;
}

const Quantization *covering(ir::Context &ctx, ir::Type from, ElementType to) {
  const std::optional<Range> source = range_of(from.element()), target = range_of(to);
  if (!is_per_tensor(from) || !source || !target || target->min >= 0)
    return nullptr;
  const double scale = from.quant()->scales[0];
  const auto zero = static_cast<double>(from.quant()->zero_points[0]);
  const double reach =
      std::max(zero - static_cast<double>(source->min), static_cast<double>(source->max) - zero) *
      scale;
  return per_tensor(ctx, static_cast<float>(reach / static_cast<double>(target->max)), 0);
}

} // namespace chute::quant

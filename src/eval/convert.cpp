#include "eval/convert.h"

#include "aten/promotion.h"
#include "support/parallel.h"
#include "ir/element_convert.h"
#include "support/float_formats.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace chute::eval {

namespace {

struct Half {
  u16 bits;
};
struct Brain {
  u16 bits;
};

/// A float as an integer without undefined behaviour: out of range and NaN give the minimum, which
/// is what the x86 conversion instruction gives.
i64 truncate(double v) {
  if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0))
    return std::numeric_limits<i64>::min();
  return static_cast<i64>(v);
}

template <class To, class From>
To number(From v) {
  if constexpr (std::is_same_v<From, Half>)
    return number<To>(f16_to_f32(v.bits));
  else if constexpr (std::is_same_v<From, Brain>)
    return number<To>(bf16_to_f32(v.bits));
  else if constexpr (std::is_same_v<To, Half>)
    return Half{f32_to_f16(number<float>(v))};
  else if constexpr (std::is_same_v<To, Brain>)
    return Brain{f32_to_bf16(number<float>(v))};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, u64>)
      if (v >= static_cast<From>(9223372036854775808.0))
        return static_cast<u64>(v);
    return static_cast<To>(truncate(static_cast<double>(v)));
  } else
    return static_cast<To>(v);
}

template <class S, class C>
void load_as(const std::byte *from, i64 n, C *to) {
  const S *s = reinterpret_cast<const S *>(from);
  for (i64 i = 0; i < n; ++i)
    to[i] = number<C>(s[i]);
}
template <class S, class C>
void store_as(const C *from, i64 n, std::byte *to) {
  S *s = reinterpret_cast<S *>(to);
  for (i64 i = 0; i < n; ++i)
    s[i] = number<S>(from[i]);
}

} // namespace

bool computable(ElementType t) {
  return t == ElementType::Bool || ir::is_integer(t) || ir::is_float(t);
}

Compute compute_of(ElementType t) {
  if (t == ElementType::F64)
    return Compute::F64;
  if (ir::is_float(t))
    return Compute::F32;
  return t == ElementType::U64 ? Compute::U64 : Compute::I64;
}

template <class C>
bool stored_as(ElementType t) {
  if constexpr (std::is_same_v<C, float>)
    return t == ElementType::F32;
  else if constexpr (std::is_same_v<C, double>)
    return t == ElementType::F64;
  else if constexpr (std::is_same_v<C, i64>)
    return t == ElementType::I64 || t == ElementType::I48;
  else
    return t == ElementType::U64;
}

template <class C>
void load_run(ElementType t, const std::byte *from, i64 n, C *to) {
  switch (t) {
  case ElementType::Bool:
    for (i64 i = 0; i < n; ++i)
      to[i] = static_cast<C>(from[i] != std::byte{0});
    return;
  case ElementType::U8:
  case ElementType::U4: return load_as<u8>(from, n, to);
  case ElementType::I8:
  case ElementType::I4: return load_as<i8>(from, n, to);
  case ElementType::U16: return load_as<u16>(from, n, to);
  case ElementType::I16: return load_as<i16>(from, n, to);
  case ElementType::U32: return load_as<u32>(from, n, to);
  case ElementType::I32: return load_as<i32>(from, n, to);
  case ElementType::U64: return load_as<u64>(from, n, to);
  case ElementType::I64:
  case ElementType::I48: return load_as<i64>(from, n, to);
  case ElementType::F16: return load_as<Half>(from, n, to);
  case ElementType::BF16: return load_as<Brain>(from, n, to);
  case ElementType::F32: return load_as<float>(from, n, to);
  case ElementType::F64: return load_as<double>(from, n, to);
  default: // eight-bit floats
    for (i64 i = 0; i < n; ++i)
      to[i] = number<C>(ir::load_element(t, from + i));
  }
}

template <class C>
void store_run(ElementType t, const C *from, i64 n, std::byte *to) {
  switch (t) {
  case ElementType::Bool:
    for (i64 i = 0; i < n; ++i)
      to[i] = std::byte{from[i] != C{0}};
    return;
  case ElementType::U8: return store_as<u8>(from, n, to);
  case ElementType::I8: return store_as<i8>(from, n, to);
  case ElementType::U4:
    for (i64 i = 0; i < n; ++i)
      to[i] = static_cast<std::byte>(number<u8>(from[i]) & 15);
    return;
  case ElementType::I4:
    for (i64 i = 0; i < n; ++i)
      to[i] = static_cast<std::byte>(static_cast<i8>(number<u8>(from[i]) << 4) >> 4);
    return;
  case ElementType::U16: return store_as<u16>(from, n, to);
  case ElementType::I16: return store_as<i16>(from, n, to);
  case ElementType::U32: return store_as<u32>(from, n, to);
  case ElementType::I32: return store_as<i32>(from, n, to);
  case ElementType::U64: return store_as<u64>(from, n, to);
  case ElementType::I64: return store_as<i64>(from, n, to);
  case ElementType::I48:
    for (i64 i = 0; i < n; ++i)
      reinterpret_cast<i64 *>(to)[i] = static_cast<i64>(number<u64>(from[i]) << 16) >> 16;
    return;
  case ElementType::F16: return store_as<Half>(from, n, to);
  case ElementType::BF16: return store_as<Brain>(from, n, to);
  case ElementType::F32: return store_as<float>(from, n, to);
  case ElementType::F64: return store_as<double>(from, n, to);
  default:
    for (i64 i = 0; i < n; ++i)
      ir::store_element(t, number<double>(from[i]), to + i);
  }
}

#define INSTANTIATE(C)                                                                             \
  template bool stored_as<C>(ElementType);                                                         \
  template void load_run<C>(ElementType, const std::byte *, i64, C *);                             \
  template void store_run<C>(ElementType, const C *, i64, std::byte *);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(i64)
INSTANTIATE(u64)
#undef INSTANTIATE

Tensor cast(const Tensor &t, ElementType element) {
  if (t.element() == element)
    return t;
  Tensor out = Tensor::allocate(element, t.shape());
  const size_t from = t.item_bytes();
  const size_t to = out.item_bytes();
  with_compute(compute_of(t.element()), [&](auto zero) {
    using C = decltype(zero);
    constexpr i64 kBlock = 2048;
    parallel_for(t.num_elements(), 16 * kBlock, [&](i64 begin, i64 end) {
      C buffer[kBlock];
      for (i64 i = begin; i < end; i += kBlock) {
        const i64 n = std::min(kBlock, end - i);
        const C *source = buffer;
        if (stored_as<C>(t.element()))
          source = t.as<C>() + i;
        else
          load_run(t.element(), t.data() + static_cast<size_t>(i) * from, n, buffer);
        store_run(element, source, n, out.mutable_data() + static_cast<size_t>(i) * to);
      }
    });
  });
  return out;
}

namespace {

int category(ElementType t) { return ir::is_float(t) ? 2 : t == ElementType::Bool ? 0 : 1; }

} // namespace

ElementType promote(const Tensor &a, const Tensor &b) {
  if ((a.rank() == 0) != (b.rank() == 0)) {
    const Tensor &array = a.rank() ? a : b;
    const Tensor &number = a.rank() ? b : a;
    if (category(array.element()) >= category(number.element()))
      return array.element();
    // A number of a higher category brings its type, a Python float the default one.
    return number.element();
  }
  return aten::promote_types(a.element(), b.element()).value_or(a.element());
}

} // namespace chute::eval

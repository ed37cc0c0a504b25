#include "eval/tensor.h"

#include "ir/constant.h"
#include "ir/element_convert.h"
#include "support/check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace chute::eval {

i64 num_elements(std::span<const i64> shape) {
  i64 n = 1;
  for (i64 d : shape)
    if (d == 0)
      return 0;
  for (i64 d : shape)
    if (__builtin_mul_overflow(n, d, &n))
      return std::numeric_limits<i64>::max();
  return n;
}

Shape dense_strides(std::span<const i64> shape) {
  Shape strides(shape.size());
  i64 n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = n;
    n *= std::max<i64>(shape[i], 1);
  }
  return strides;
}

size_t Tensor::item_bytes() const { return static_cast<size_t>(ir::element_bytes(element_)); }

Tensor Tensor::allocate(ElementType element, Shape shape) {
  Tensor t;
  t.element_ = element;
  t.count_ = eval::num_elements(shape);
  t.shape_ = std::move(shape);
  const size_t item = t.item_bytes();
  // Beyond this no machine has the memory, and sizes in bytes stop fitting.
  if (t.count_ < 0 || (item && t.count_ > (i64{1} << 46) / static_cast<i64>(item)))
    throw std::bad_alloc();
  // A multiple of the alignment, and never empty so that data() is never null.
  const size_t bytes = (t.num_bytes() + 63) / 64 * 64;
  void *p = std::aligned_alloc(64, std::max<size_t>(bytes, 64));
  if (!p)
    throw std::bad_alloc();
  t.owner_ =
      std::shared_ptr<const void>(p, [](const void *q) { std::free(const_cast<void *>(q)); });
  t.data_ = static_cast<const std::byte *>(p);
  return t;
}

Tensor Tensor::zeros(ElementType element, Shape shape) {
  Tensor t = allocate(element, std::move(shape));
  if (t.num_bytes())
    std::memset(t.mutable_data(), 0, t.num_bytes());
  return t;
}

Tensor Tensor::of_bytes(ElementType element, Shape shape, std::span<const std::byte> bytes) {
  Tensor t = allocate(element, std::move(shape));
  CHUTE_CHECK(bytes.size() == t.num_bytes(), "wrong number of values for the shape");
  if (!bytes.empty())
    std::memcpy(t.mutable_data(), bytes.data(), bytes.size());
  return t;
}

Tensor Tensor::view(ElementType element, Shape shape, const std::byte *data,
                    std::shared_ptr<const void> owner) {
  Tensor t;
  t.element_ = element;
  t.count_ = eval::num_elements(shape);
  t.shape_ = std::move(shape);
  const size_t align = std::min<size_t>(t.item_bytes(), 8);
  if (!data || (align && reinterpret_cast<uintptr_t>(data) % align))
    return of_bytes(element, std::move(t.shape_), {data, t.num_bytes()});
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::of_constant(const ir::Constant &c) {
  Shape shape;
  shape.reserve(static_cast<size_t>(c.type.rank()));
  for (ir::SymInt d : c.type.shape())
    shape.push_back(d.value());
  if (c.is_dense())
    return view(c.type.element(), std::move(shape), c.data, c.owner);
  Tensor t = allocate(c.type.element(), std::move(shape));
  c.copy_dense(t.mutable_data());
  return t;
}

Tensor Tensor::scalar(ElementType element, double value) {
  Tensor t = allocate(element, {});
  ir::store_element(element, value, t.mutable_data());
  return t;
}

Tensor Tensor::scalar_int(ElementType element, i64 value) {
  Tensor t = allocate(element, {});
  ir::store_element_int(element, value, t.mutable_data());
  return t;
}

Tensor Tensor::reshaped(Shape shape) const {
  CHUTE_CHECK(eval::num_elements(shape) == count_, "reshape changes the number of elements");
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

double Tensor::at(i64 i) const {
  return ir::load_element(element_, data_ + i * static_cast<i64>(item_bytes()));
}
i64 Tensor::int_at(i64 i) const {
  return ir::load_element_int(element_, data_ + i * static_cast<i64>(item_bytes()));
}

bool same_bits(const Tensor &a, const Tensor &b) {
  return a.element() == b.element() && a.shape() == b.shape() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
}

} // namespace chute::eval

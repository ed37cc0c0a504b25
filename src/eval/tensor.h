#pragma once

#include "ir/element_type.h"
#include "support/ints.h"

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace chute::ir {
struct Constant;
}

namespace chute::eval {

using ir::ElementType;
using Shape = std::vector<i64>;

/// Product of the extents, saturated at INT64_MAX; 1 for rank 0.
i64 num_elements(std::span<const i64> shape);
/// Row-major element strides.
Shape dense_strides(std::span<const i64> shape);

/// A dense row-major tensor on the host. Copies share the bytes. The data is aligned to the element
/// size. A default-constructed one is "not there" (an absent optional operand, a literal None).
///
/// Numbers as values (ir::TypeKind::Int, Float, Bool) are rank-0 tensors of I64, F64, Bool.
class Tensor {
public:
  Tensor() = default;
  /// With bytes that are not set yet. Throws std::bad_alloc.
  static Tensor allocate(ElementType element, Shape shape);
  static Tensor zeros(ElementType element, Shape shape);
  /// A view of bytes that `owner` keeps alive. Copied when `data` is not aligned for the type.
  static Tensor view(ElementType element, Shape shape, const std::byte *data,
                     std::shared_ptr<const void> owner);
  /// A view of a dense constant, a dense copy of a strided one. The constant must have data.
  static Tensor of_constant(const ir::Constant &c);
  /// Rank 0; converted as torch converts a Python number.
  static Tensor scalar(ElementType element, double value);
  static Tensor scalar_int(ElementType element, i64 value);
  /// From values stored as T, which must be the element type's storage.
  template <class T>
  static Tensor of(ElementType element, Shape shape, std::span<const T> values) {
    return of_bytes(element, std::move(shape), std::as_bytes(values));
  }
  static Tensor f32(Shape shape, std::initializer_list<float> values) {
    return of(ElementType::F32, std::move(shape), std::span(values.begin(), values.size()));
  }
  static Tensor i64s(Shape shape, std::initializer_list<i64> values) {
    return of(ElementType::I64, std::move(shape), std::span(values.begin(), values.size()));
  }

  bool defined() const { return element_ != ElementType::None; }
  ElementType element() const { return element_; }
  const Shape &shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  i64 dim(int i) const { return shape_[static_cast<size_t>(i)]; }
  i64 num_elements() const { return count_; }
  size_t item_bytes() const;
  size_t num_bytes() const { return static_cast<size_t>(count_) * item_bytes(); }

  const std::byte *data() const { return data_; }
  std::span<const std::byte> bytes() const { return {data_, num_bytes()}; }
  template <class T>
  const T *as() const {
    return reinterpret_cast<const T *>(data_);
  }
  /// For the maker of a tensor, before anyone else sees it.
  std::byte *mutable_data() { return const_cast<std::byte *>(data_); }
  template <class T>
  T *mutable_as() {
    return reinterpret_cast<T *>(mutable_data());
  }
  const std::shared_ptr<const void> &owner() const { return owner_; }

  /// The same bytes under another shape with as many elements.
  Tensor reshaped(Shape shape) const;
  /// One element as a number, by row-major position.
  double at(i64 i) const;
  i64 int_at(i64 i) const;

private:
  static Tensor of_bytes(ElementType element, Shape shape, std::span<const std::byte> bytes);

  ElementType element_ = ElementType::None;
  Shape shape_;
  i64 count_ = 0;
  const std::byte *data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// Same element type, shape and bytes.
bool same_bits(const Tensor &a, const Tensor &b);

} // namespace chute::eval

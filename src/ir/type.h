#pragma once

#include "ir/element_type.h"
#include "ir/sym.h"

#include <span>

namespace chute::ir {

enum class TypeKind : u8 {
  None,   ///< an absent result (`as_none`) or a value without content
  Tensor, ///< element type, shape, optional quantization
  Int,    ///< a Python int as a value (a size, an item)
  Float,  ///< a Python float as a value
  Bool,   ///< a Python bool as a value
  Opaque, ///< tokens, script objects: carried, never computed with
};

enum class QuantKind : u8 { PerTensor, PerChannel, Block, MX };

/// Affine quantization: real = scale * (stored - zero_point). Interned: compare by pointer.
/// PerTensor: one scale and zero point. PerChannel: one each per index of `axis`.
/// Block: `block_size` elements along `axis` share a scale; scales are in row-major block order.
/// MX: `axis` and `block_size` (32) only; scales travel with the elements.
struct Quantization {
  QuantKind kind = QuantKind::PerTensor;
  i32 axis = 0;
  i32 block_size = 0;
  std::span<const float> scales;
  std::span<const i64> zero_points;
};

/// Storage of an interned type. `id` is dense per Context.
struct TypeStorage {
  TypeKind kind = TypeKind::None;
  ElementType element = ElementType::None;
  u32 id = 0;
  std::span<const SymInt> shape;
  const Quantization *quant = nullptr;
};

/// A handle of an interned type: pointer-sized, compared by identity. Made by a Context
/// (`ctx.tensor_type(…)`), valid while that lives. Default-constructed: invalid.
class Type {
public:
  Type() = default;
  explicit Type(const TypeStorage *storage) : storage_(storage) {}
  explicit operator bool() const { return storage_ != nullptr; }

  TypeKind kind() const { return storage_->kind; }
  bool is_tensor() const { return storage_->kind == TypeKind::Tensor; }
  ElementType element() const { return storage_->element; }
  std::span<const SymInt> shape() const { return storage_->shape; }
  int rank() const { return static_cast<int>(storage_->shape.size()); }
  SymInt dim(int i) const { return storage_->shape[static_cast<size_t>(i)]; }
  const Quantization *quant() const { return storage_->quant; }
  u32 id() const { return storage_->id; }

  bool has_static_shape() const {
    for (SymInt d : storage_->shape)
      if (d.is_symbolic())
        return false;
    return true;
  }
  /// Product of the dimensions; only with a static shape. 1 for rank 0. Saturates at INT64_MAX.
  i64 num_elements() const;

  friend bool operator==(Type a, Type b) { return a.storage_ == b.storage_; }

private:
  const TypeStorage *storage_ = nullptr;
};

} // namespace chute::ir

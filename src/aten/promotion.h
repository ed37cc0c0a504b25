#pragma once

#include "ir/attr.h"
#include "ir/op.h"
#include "ir/type.h"

#include <optional>
#include <span>

/// PyTorch's type promotion (the rules of `torch.result_type` and of the TensorIterator).
namespace chute::aten {

/// What a Python float becomes, and integers in operators that compute in floating point. Exported
/// programs that changed `torch.set_default_dtype` carry explicit dtypes.
inline constexpr ir::ElementType kDefaultFloat = ir::ElementType::F32;

/// The smallest type that holds both (`torch.promote_types`). nullopt where PyTorch refuses: fp8
/// with anything else, u16/u32/u64 with another integer, bool or complex type.
std::optional<ir::ElementType> promote_types(ir::ElementType a, ir::ElementType b);

/// The element type of a tensor made from a Python scalar: Int gives I64, Float the default float
/// type, Bool Bool, Complex C64. None for any other kind.
ir::ElementType scalar_element(ir::Attr scalar);

/// Integers and Bool give the default float type; anything else stays.
ir::ElementType int_to_float(ir::ElementType e);

/// Integers and Bool give I64; anything else stays. The rule of sums and products.
ir::ElementType int_to_i64(ir::ElementType e);

/// The type of a complex type's parts; a real type stays.
ir::ElementType real_element(ir::ElementType e);

/// Accumulates operands. Tensors with dimensions decide the type unless a rank-0 tensor is of a
/// higher category (bool < integer < float < complex), and those two unless a Python scalar is.
class PromotionState {
public:
  void add_tensor(ir::Type type);
  /// An attribute of kind Int, Float, Bool or Complex; None is no operand.
  void add_scalar(ir::Attr scalar);
  /// nullopt when PyTorch refuses the combination or nothing was added.
  std::optional<ir::ElementType> result() const;

private:
  void merge(ir::ElementType &slot, ir::ElementType e);
  ir::ElementType dimensioned_ = ir::ElementType::None;
  ir::ElementType zero_dim_ = ir::ElementType::None;
  ir::ElementType scalar_ = ir::ElementType::None;
  bool refused_ = false;
};

/// `torch.result_type` over any number of tensors and scalars.
std::optional<ir::ElementType> result_type(std::span<const ir::Type> tensors,
                                           std::span<const ir::Attr> scalars = {});

/// The type in which an operator with the trait kPromotes computes: its tensor operands (not
/// `out` and `condition`) and its scalar attributes self, other, exponent, min, max
/// promoted, then raised to float where the operator has kIntToFloat. Result types differ from it
/// only for comparisons (Bool). nullopt when PyTorch refuses the combination.
std::optional<ir::ElementType> computation_type(const ir::Op &op);

/// The same without the trait kIntToFloat.
std::optional<ir::ElementType> promoted_type(const ir::Op &op);

} // namespace chute::aten

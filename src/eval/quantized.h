#pragma once

#include "eval/kernel.h"
#include "ir/type.h"

#include <vector>

/// How quantized tensors compute: as the real numbers that they stand for. Operands are dequantized
/// to f32, the kernel runs as for floats, and a result of quantized type is quantized again by its
/// own parameters, once per operator. Runtimes with integer kernels differ from that by at most
/// the rounding of their fixed-point multipliers.
namespace chute::eval {

/// real = scale * (stored - zero_point), computed in f32 as TFLite's reference kernels do. Per
/// tensor, per channel and per block; `t` is of integers. Errors: eval.quantized (MX, parameters
/// that do not fit the shape, an element type without integers).
Result<Tensor> dequantize(const Tensor &t, const ir::Quantization &q);

/// stored = clamp(round(real / scale) + zero_point), ties away from zero; NaN becomes the zero
/// point. `t` is of floats. Errors as dequantize().
Result<Tensor> quantize(const Tensor &t, ElementType element, const ir::Quantization &q);

/// Rows `first` to `first + count` of the first dim of `t`, as dequantize() of all of them gives.
Result<Tensor> dequantize_rows(const Tensor &t, const ir::Quantization &q, i64 first, i64 count);

/// Whether `op` has to see real numbers: it touches quantized types and does not merely move stored
/// numbers between tensors of the same parameters.
bool computes_dequantized(const ir::Op &op);

/// The operands of one such operator as real numbers.
class RealOperands {
public:
  RealOperands(const ir::Op &op, std::span<const Tensor *const> stored)
      : op_(op), stored_(stored) {}

  /// Dequantizes the operands and declares quantized results f32 in `types`. Left as stored: a
  /// table that elements are moved from, and weights of FULLY_CONNECTED above 16 MiB of f32, which
  /// the kernel dequantizes in tiles.
  Status load(std::vector<ResultType> &types);
  std::span<const Tensor *const> operands() const { return operands_; }
  /// Quantizes the results whose types ask for it, and puts their element types back.
  Status store(std::vector<ResultType> &types, std::vector<Tensor> &results) const;

private:
  const ir::Op &op_;
  std::span<const Tensor *const> stored_;
  std::vector<Tensor> real_;
  const ir::Quantization *moved_ = nullptr; ///< elements are moved as stored, then converted
  std::vector<const Tensor *> operands_;
};

} // namespace chute::eval

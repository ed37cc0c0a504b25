#pragma once

#include "tosa/quant/fold.h"

/// Functions of i32 tensors that hold fixed-point numbers: what integer softmax and normalizations
/// are made of. Internal to tosa/quant.
namespace chute::tosa {

/// x * y / 2^shift, rounded, of i32.
Value *mul_shifted(Emit &e, Value *x, Value *y, int shift);
/// x * 2^n for a tensor of n, and x / 2^n towards minus infinity.
Value *shifted_left_by(Emit &e, Value *x, Value *n);
Value *shifted_right_by(Emit &e, Value *x, Value *n);
/// The number of leading zeros of positive i32.
Value *leading_zeros(Emit &e, Value *x);

/// A function from [0, 65535] to [0, 1].
using Unit = double (*)(double u, double parameter);

/// round(65535 * f(u)) of i32 in [0, 65535]. With `wide` by a table of 16 bits, interpolated
/// between multiples of 128 (extension INT16); otherwise by two tables of 8 bits, for the upper and
/// the lower half of the result, of the upper 8 bits of `u`: as they are when `exact` (the others
/// are zero), else at the middle of what they stand for.
Value *look_up(Emit &e, Value *u, bool wide, bool exact, Unit f, double parameter = 0);

} // namespace chute::tosa

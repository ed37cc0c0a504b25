#pragma once

namespace chute::eval {

/// Inverse error function on (-1, 1); ±infinity at ±1, NaN outside.
double erfinv(double x);
/// Derivative of log gamma; PyTorch's values at the poles (-inf at 0, NaN at negative integers).
double digamma(double x);
/// Derivative of digamma.
double trigamma(double x);
/// Modified Bessel function of the first kind, order 0.
double bessel_i0(double x);

} // namespace chute::eval

#include "eval/kernels/special.h"

#include <cmath>
#include <limits>

namespace chute::eval {

double erfinv(double x) {
  if (std::isnan(x) || std::fabs(x) > 1)
    return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(x) == 1)
    return std::copysign(std::numeric_limits<double>::infinity(), x);
  if (x == 0)
    return x;
  // Start from Winitzki's closed form (relative error 2e-3), then Halley steps on erf(y) = x, with
  // erfc on the flat side so that the residual keeps its digits.
  const double magnitude = std::fabs(x);
  const double complement = 1 - magnitude;
  const double a = 0.147;
  const double l = std::log(complement * (1 + magnitude));
  const double b = 2 / (M_PI * a) + l / 2;
  double y = std::sqrt(std::sqrt(b * b - l / a) - b);
  for (int i = 0; i < 4; ++i) {
    const double residual = magnitude < 0.5 ? std::erf(y) - magnitude : complement - std::erfc(y);
    const double step = residual / (M_2_SQRTPI * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double digamma(double x) {
  if (x == 0)
    return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x))
      return std::numeric_limits<double>::quiet_NaN();
    // Reflection: psi(1 - x) - psi(x) = pi / tan(pi x).
    double whole;
    const double part = std::modf(x, &whole);
    return digamma(1 - x) - M_PI / std::tan(M_PI * part);
  }
  double shift = 0;
  for (; x < 10; x += 1)
    shift += 1 / x; // psi(x + 1) = psi(x) + 1/x
  // Asymptotic series with Bernoulli numbers: ln x - 1/2x - sum B_2k / (2k x^2k).
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return std::log(x) - 0.5 / x - series - shift;
}

double trigamma(double x) {
  if (x <= 0) {
    if (x == std::floor(x))
      return std::numeric_limits<double>::infinity();
    const double s = std::sin(M_PI * x);
    return M_PI * M_PI / (s * s) - trigamma(1 - x);
  }
  double shift = 0;
  for (; x < 10; x += 1)
    shift += 1 / (x * x);
  const double z = 1 / (x * x);
  const double series =
      (1 + z * (1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * 5.0 / 66))))) / x;
  return shift + z / 2 + series;
}

double bessel_i0(double x) {
  x = std::fabs(x);
  if (std::isnan(x) || std::isinf(x))
    return x;
  double term = 1;
  double sum = 1;
  if (x < 30) {
    // sum of (x/2)^2k / (k!)^2: all terms positive, nothing cancels.
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= x / (2 * k) * (x / (2 * k));
      sum += term;
    }
    return sum;
  }
  // e^x / sqrt(2 pi x) * sum of (1 * 9 * … (2k-1)^2) / (k! (8x)^k).
  for (int k = 1; k < 40 && term > sum * 1e-17; ++k) {
    term *= (2.0 * k - 1) * (2.0 * k - 1) / (8 * x * k);
    sum += term;
  }
  return std::exp(x / 2) * (sum / std::sqrt(2 * M_PI * x)) * std::exp(x / 2);
}

} // namespace chute::eval

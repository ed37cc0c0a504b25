#pragma once

#include "ptq/scheme.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace chute::ptq {

enum class ObserverKind : u8 {
  MinMax,        ///< every number that was seen
  MovingAverage, ///< extremes per sample, averaged with weight 0.1 for the newest
  Percentile,    ///< without the outermost numbers on either side
  Mse,           ///< the range whose quantization error over all that was seen is least
};
struct ObserverOptions {
  ObserverKind kind = ObserverKind::MinMax;
  double percentile = 99.99; ///< Percentile: the share kept below the upper end, in (50, 100]
};

/// Watches one tensor over the calibration samples. Needs a few bytes, with a histogram
/// (Percentile, Mse) 16 KiB; the histogram widens by powers of two, so that numbers are looked at
/// once and their order does not matter.
class Observer {
public:
  explicit Observer(const ObserverOptions &options) : options_(options) {}

  /// The finite numbers of one sample. Cost: one look each.
  void observe(std::span<const float> values);
  /// The range to quantize with `element`; empty when no number was seen.
  Range range(ir::ElementType element, bool symmetric) const;
  /// Every number that was seen.
  Range seen() const { return seen_; }

private:
  static constexpr int kBins = 4096; ///< over [-limit_, limit_)
  void widen(float magnitude);
  Range percentile() const;
  Range least_error(ir::ElementType element, bool symmetric) const;
  /// The middle of a bin.
  double middle(int bin) const {
    return (static_cast<double>(bin) + 0.5 - kBins / 2) * static_cast<double>(limit_) / (kBins / 2);
  }

  ObserverOptions options_;
  Range seen_;
  Range average_;
  float limit_ = 0;
  u64 count_ = 0;
  std::vector<u32> bins_; ///< saturating
};

} // namespace chute::ptq

#include "ptq/observer.h"

#include "quant/params.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::ptq {

void Observer::widen(float magnitude) {
  if (bins_.empty())
    bins_.assign(kBins, 0);
  if (limit_ == 0)
    limit_ = std::exp2(std::max(-120.0f, std::floor(std::log2(std::max(magnitude, 1e-36f)))));
  // Two neighbours become one, around the middle.
  while (!(magnitude < limit_) && limit_ < std::numeric_limits<float>::max() / 4) {
    std::vector<u32> wide(kBins, 0);
    for (int i = 0; i < kBins; ++i) {
      u32 &to = wide[static_cast<size_t>(kBins / 4 + i / 2)];
      const u64 sum = u64{to} + bins_[static_cast<size_t>(i)];
      to = static_cast<u32>(std::min<u64>(sum, std::numeric_limits<u32>::max()));
    }
    bins_ = std::move(wide);
    limit_ *= 2;
  }
}

void Observer::observe(std::span<const float> values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Range sample{kInfinity, -kInfinity};
  for (const float v : values)
    if (std::isfinite(v)) {
      sample.lo = std::min(sample.lo, v);
      sample.hi = std::max(sample.hi, v);
    }
  if (sample.empty())
    return;
  seen_.include(sample);
  if (average_.empty()) {
    average_ = sample;
  } else {
    average_.lo += 0.1f * (sample.lo - average_.lo);
    average_.hi += 0.1f * (sample.hi - average_.hi);
  }
  if (options_.kind != ObserverKind::Percentile && options_.kind != ObserverKind::Mse)
    return;
  widen(std::max(std::fabs(sample.lo), std::fabs(sample.hi)));
  const float to_bin = static_cast<float>(kBins / 2) / limit_;
  for (const float v : values) {
    if (!std::isfinite(v))
      continue;
    const int bin = std::clamp(static_cast<int>(std::floor(v * to_bin)) + kBins / 2, 0, kBins - 1);
    u32 &n = bins_[static_cast<size_t>(bin)];
    n += n != std::numeric_limits<u32>::max();
    ++count_;
  }
}

Range Observer::percentile() const {
  const double cut = static_cast<double>(count_) * (1 - options_.percentile / 100);
  const auto end = [&](bool low) {
    double passed = 0;
    for (int k = 0; k < kBins; ++k) {
      const int bin = low ? k : kBins - 1 - k;
      passed += bins_[static_cast<size_t>(bin)];
      if (passed > cut)
        return static_cast<float>(middle(bin));
    }
    return 0.0f;
  };
  Range r{end(true), end(false)};
  r.lo = std::clamp(r.lo, seen_.lo, seen_.hi);
  r.hi = std::clamp(r.hi, r.lo, seen_.hi);
  return r;
}

Range Observer::least_error(ir::ElementType element, bool symmetric) const {
  const quant::Range stored = quant::range_of(element).value_or(quant::Range{});
  const auto steps = static_cast<double>(stored.max - stored.min);
  Range best = seen_;
  double least = std::numeric_limits<double>::infinity();
  for (int percent = 100; percent >= 20; percent -= 2) {
    double lo = std::min(0.0, static_cast<double>(seen_.lo) * percent / 100);
    double hi = std::max(0.0, static_cast<double>(seen_.hi) * percent / 100);
    if (symmetric) {
      hi = std::max(hi, -lo);
      lo = -hi;
    }
    // Inside, the error is spread evenly over a step; outside, it is the distance to the end.
    const double step = (hi - lo) / steps;
    double error = 0;
    for (int i = 0; i < kBins; ++i) {
      if (!bins_[static_cast<size_t>(i)])
        continue;
      const double v = middle(i);
      const double off = std::max({0.0, v - hi, lo - v});
      error += (off > 0 ? off * off : step * step / 12) * bins_[static_cast<size_t>(i)];
    }
    if (error < least) {
      least = error;
      best = {static_cast<float>(std::max(lo, static_cast<double>(seen_.lo))),
              static_cast<float>(std::min(hi, static_cast<double>(seen_.hi)))};
    }
  }
  if (best.empty())
    best = seen_;
  return best;
}

Range Observer::range(ir::ElementType element, bool symmetric) const {
  if (seen_.empty())
    return {};
  switch (options_.kind) {
  case ObserverKind::MinMax: return seen_;
  case ObserverKind::MovingAverage: return average_;
  case ObserverKind::Percentile: return percentile();
  case ObserverKind::Mse: return least_error(element, symmetric);
  }
  return seen_;
}

} // namespace chute::ptq

#pragma once

#include "circle/legalize/emit.h"

namespace chute::circle {

/// One spatial dimension of a convolution or pooling window, in torch's terms: `before` zeros in
/// front, windows of `kernel` elements `dilation` apart every `stride`, `out` of them.
struct Axis {
  SymInt in;
  SymInt out;
  i64 kernel = 1;
  i64 stride = 1;
  i64 before = 0;
  i64 dilation = 1;

  i64 extent() const { return (kernel - 1) * dilation + 1; }
  /// Elements after the input that the last window reaches (never negative). With a run-time size
  /// the symmetric padding.
  i64 after() const {
    if (in.is_symbolic() || out.is_symbolic())
      return before;
    return std::max<i64>(0, (out.value() - 1) * stride + extent() - in.value() - before);
  }
  /// Whether Circle's SAME padding gives the very same windows: ceil(in / stride) of them, with
  /// half of the padding (rounded down) in front.
  bool is_same() const {
    if (in.is_symbolic() || out.is_symbolic())
      return stride == 1 && 2 * before == extent() - 1;
    const i64 n = (in.value() + stride - 1) / stride;
    const i64 total = std::max<i64>(0, (n - 1) * stride + extent() - in.value());
    return out == SymInt(n) && total / 2 == before;
  }
  bool is_valid() const { return before == 0 && after() == 0; }
};

/// How a window over height and width is spelled: VALID, SAME, or an explicit PAD and VALID.
struct Padding {
  std::string_view name;
  Dims pairs; ///< for PAD on NHWC; empty when there is none
};

inline Padding choose_padding(const Axis &h, const Axis &w) {
  if (h.is_valid() && w.is_valid())
    return {"VALID", {}};
  if (h.is_same() && w.is_same())
    return {"SAME", {}};
  return {"VALID", {0, 0, h.before, h.after(), w.before, w.after(), 0, 0}};
}

inline constexpr std::initializer_list<i64> kToNhwc = {0, 2, 3, 1};
inline constexpr std::initializer_list<i64> kToNchw = {0, 3, 1, 2};

} // namespace chute::circle

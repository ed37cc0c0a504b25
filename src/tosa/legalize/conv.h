#pragma once

#include "tosa/legalize/emit.h"

namespace chute::tosa {

/// A convolution in torch's terms; lists have one entry per spatial dimension.
struct Conv {
  Dims stride{1, 1}, pad{0, 0}, dilation{1, 1}, output_pad{0, 0};
  i64 groups = 1;
};

/// x: NHWC; w: OHWI, a weight of one group; the bias may be null. Result NHWC.
Value *conv2d(Emit &e, Value *x, Value *w, Value *bias, const Conv &c);

/// One spatial dimension of a window: what TOSA wants is `before` and `after` zeros and an input
/// that the windows divide.
struct Window {
  i64 before = 0;
  i64 after = 0; ///< may be less than before, never negative
  i64 cut = 0;   ///< elements at the input's end that no window reaches
};
/// `out` windows of `extent` elements every `stride`, the first one `before` elements early.
Window window_of(i64 in, i64 out, i64 extent, i64 stride, i64 before);

/// What products of `e` accumulate in.
ElementType accumulator_of(ElementType e);

} // namespace chute::tosa

#pragma once

#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

/// A SLICE or STRIDED_SLICE whose bounds are constants, per dimension of its operand.
struct Cut {
  Value *source = nullptr; ///< null: the bounds are no constants
  Dims begin, step, size;  ///< of dimensions of known size; 0, 1, -1 for others
  std::vector<bool> whole; ///< everything of that dimension, in order
  bool is_static = true;   ///< every dimension has begin, step and size
  bool same_rank = true;   ///< no dimension is dropped or added
  explicit operator bool() const { return source != nullptr; }
  bool is_whole() const { return std::find(whole.begin(), whole.end(), false) == whole.end(); }
};

/// Reads the operator's bounds as TensorFlow defines them: negative numbers count from the end, too
/// large ones (INT_MAX) are clamped, masks override. A dimension of run-time size is whole when the
/// bounds say "from the start to the end".
Cut cut_of(const ir::Op &op);

} // namespace chute::circle

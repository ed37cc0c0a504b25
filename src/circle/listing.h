#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace chute::circle {

/// What to show of a file. Sections come in this order.
struct ListingOptions {
  bool histogram = true;     ///< operators by name, tensors by element type
  bool weights = true;       ///< constants by falling size
  bool signatures = false;   ///< every signature with its ports
  bool quantization = false; ///< by element type and kind: tensors, range of scales and zero points
  bool metadata = false;     ///< names and sizes
  bool tensors = false;
  bool operators = false;
  size_t most_weights = 5;
  std::optional<u32> subgraph; ///< tensors and operators of this one only
  u64 first = 0;               ///< operators and tensors from this index
  u64 last = ~u64{0};          ///< to that one, included
  /// Tensors whose name it accepts, and operators where it accepts their own name or that of a
  /// result. Null accepts everything.
  std::function<bool(std::string_view)> name;
  bool json = false;
};

/// Takes the text piece by piece.
using ListingSink = std::function<void(std::string_view)>;

/// Describes a `.circle` or `.tflite` file as it lies there, indices included, without building a
/// graph: one walk over what is listed, one over the rest for the summary. JSON is one object.
/// Errors: kind BadInput as of the reader (circle/reader.h); `circle.index` for a subgraph that
/// does not exist.
Status list_file(std::span<const std::byte> bytes, const ListingOptions &options,
                 const ListingSink &sink);

} // namespace chute::circle

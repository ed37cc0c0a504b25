#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <cstddef>
#include <span>

namespace chute::circle {

/// What a file holds, over all subgraphs, as it lies there: whether anything uses it or not.
struct FileCounts {
  u64 bytes = 0;
  u64 subgraphs = 0;
  u64 operators = 0;
  u64 tensors = 0;
  u64 constants = 0;        ///< tensors with data
  u64 repeated_names = 0;   ///< tensors without a name, or with one that an earlier one has
  u64 buffers = 0;          ///< with data
  u64 buffer_bytes = 0;     ///< of these
  u64 repeated_buffers = 0; ///< buffers whose bytes an earlier one has, too
  u64 operator_codes = 0;
  u64 metadata = 0;
  u64 signatures = 0;
};

/// Linear. Errors: kind BadInput, as of the reader (circle/reader.h).
Result<FileCounts> count_file(std::span<const std::byte> bytes);

} // namespace chute::circle

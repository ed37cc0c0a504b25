#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace chute {

/// A file that appears whole or not at all: written to a temporary file in the same directory and
/// renamed over the target by commit(). Destruction without commit removes the temporary file.
///
/// Errors: kind Output, codes `file.create`, `file.write`, `file.commit`, the target path as
/// object. After the first error every later call returns it again, so a writer may check once at
/// the end.
class OutputFile {
public:
  static Result<OutputFile> create(const std::string &path);
  OutputFile(OutputFile &&) noexcept;
  OutputFile &operator=(OutputFile &&) noexcept;
  ~OutputFile();

  /// Appends. Small writes are collected; large ones go to the file directly.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// Appends `count` zero bytes (padding).
  Status write_zeros(u64 count);
  /// Overwrites bytes written before, at `offset` (for headers that are known only at the end).
  Status write_at(u64 offset, std::span<const std::byte> bytes);
  /// Bytes appended so far.
  u64 position() const;

  /// Renames to the target. With `sync` the content reaches the disk before the rename, so that a
  /// power failure leaves the old file or the new one.
  Status commit(bool sync = false);

private:
  struct Impl;
  explicit OutputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace chute

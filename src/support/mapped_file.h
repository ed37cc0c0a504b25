#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace chute {

/// A whole regular file mapped read-only. Shared ownership: views of its bytes (weights, JSON text)
/// stay valid as long as somebody holds the pointer, and are given out as `std::shared_ptr<const
/// void>` owners. Standard input ("-"), pipes and devices have no size and are refused.
///
/// The file must not be truncated by others while it is mapped: the operating system answers an
/// access behind the new end with a signal.
class MappedFile {
public:
  /// Errors: kind BadInput, code `file.open` (missing, no permission, not a regular file, mapping
  /// refused), with the path as object.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return path_; }
  const std::byte *data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char *>(data_), size_}; }

  enum class Access : u8 {
    Sequential, ///< read ahead
    Random,     ///< no read-ahead
    WillNeed,   ///< start reading now
    DontNeed,   ///< the pages may be dropped; they come back from the file when touched
  };
  /// A hint about the range; never fails, never changes what is read.
  void advise(size_t offset, size_t length, Access access) const;

  /// Bytes that nobody reads soon: where they lie in a file that is mapped, their
  /// pages stop counting as memory in use. Other bytes are left alone. Thread-safe.
  static void release(std::span<const std::byte> bytes);
  /// Calls `visit(part)` for parts of at most 32 MiB in order, and releases each after it. Stops at
  /// the first part that `visit` returns false for.
  template <class Visit>
  static void stream(std::span<const std::byte> bytes, Visit &&visit) {
    constexpr size_t kPart = size_t{32} << 20;
    for (size_t at = 0; at < bytes.size(); at += kPart) {
      const auto part = bytes.subspan(at, at + kPart < bytes.size() ? kPart : bytes.size() - at);
      if (!visit(part))
        return;
      release(part);
    }
  }

private:
  MappedFile() = default;
  std::string path_;
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace chute

#pragma once

#include "support/mapped_file.h"
#include "support/result.h"
#include "support/view_hash.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chute::pt2 {

/// One member as the central directory describes it. `name` views the archive's bytes.
struct ZipEntry {
  std::string_view name;
  u64 header = 0; ///< offset of the local header in the archive
  u64 compressed = 0;
  u64 size = 0;
  u32 crc = 0;
  u16 method = 0; ///< 0 stored, 8 deflated
  u16 flags = 0;
};

/// Content of a member: a view of the archive (stored) or a buffer (deflated).
struct ZipData {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  /// Bytes that may be read behind the content (parsers read whole blocks).
  size_t padding = 0;
  std::string_view text() const {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }
};

/// Reads a zip archive in place: stored and deflated members, zip64, data descriptors (sizes come
/// from the central directory). Every offset is checked before it is followed; names must be unique
/// and members must not overlap. Multi-volume and encrypted archives are refused.
///
/// Errors: kind BadInput; codes `pt2.zip.*`; the object is "member@offset" or "@offset", where
/// the offset counts from the start of the archive.
class Zip {
public:
  /// A deflated member that inflates to more than `max_inflated` bytes is refused. So is one that
  /// claims more than deflate can produce from its compressed size.
  static Result<Zip> open(std::span<const std::byte> archive, std::shared_ptr<const void> owner,
                          u64 max_inflated = u64{1} << 34);

  /// In the order of the central directory, directories left out.
  const std::vector<ZipEntry> &entries() const { return entries_; }
  /// Null when there is none.
  const ZipEntry *find(std::string_view name) const;
  /// The content; with `check_crc` its CRC-32 is compared with the directory's.
  Result<ZipData> read(const ZipEntry &entry, bool check_crc) const;
  /// Offset of a member's (packed) content in the archive.
  Result<u64> data_offset(const ZipEntry &entry) const;

private:
  Zip() = default;
  std::span<const std::byte> archive_;
  std::shared_ptr<const void> owner_;
  u64 max_inflated_ = 0;
  u64 directory_ = 0; // offset of the central directory
  std::vector<ZipEntry> entries_;
  boost::unordered_flat_map<std::string_view, u32, ViewHash> by_name_; // indices into entries_
};

} // namespace chute::pt2

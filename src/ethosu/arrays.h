#pragma once

#include "pt2/zip.h"
#include "support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chute::ethosu {

/// Arrays of the `.npz` that Vela writes. Only what its raw output needs: byte strings and
/// integers. (Other members hold pickled Python objects; they are not touched.)
class Arrays {
public:
  /// Errors: `ethosu.vela.result`.
  static Result<Arrays> open(std::span<const std::byte> npz, std::shared_ptr<const void> owner);

  /// The bytes of a NumPy byte string ("|S904"), trailing NULs that NumPy cuts off included.
  Result<std::string> bytes(std::string_view name) const;
  /// All elements of an i64, i32 or empty f64 array in order.
  Result<std::vector<i64>> integers(std::string_view name) const;

private:
  explicit Arrays(pt2::Zip zip) : zip_(std::move(zip)) {}
  struct Member {
    std::string dtype;
    pt2::ZipData data;
    std::span<const std::byte> content;
  };
  Result<Member> member(std::string_view name) const;
  pt2::Zip zip_;
};

/// ExecuTorch's stream of named blocks: `vela_bin_stream`, commands, weights, scratch size, inputs,
/// outputs, `vela_end_stream`. A block is a 16-byte name, its length, 12 bytes of flags, and the
/// payload padded to 16 bytes.
Result<std::vector<std::byte>> stream_of(const Arrays &arrays);

} // namespace chute::ethosu

#pragma once

#include "circle/reader.h"
#include "circle/write_plan.h"
#include "circle/writer.h"
#include "schema/circle_generated.h"

#include <span>
#include <vector>

/// The flatbuffer of a file, without its payload. Internal to the writer.
namespace chute::circle {

inline constexpr u64 kPayloadAlignment = 16;
/// A payload of one byte has no room in the external form, whose size 1 means "inline".
inline constexpr u64 kSmallestExternal = 2;

inline u64 align_payload(u64 n) {
  return (n + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
}

/// The flatbuffer with holes where it refers to payloads.
struct Header {
  flatbuffers::FlatBufferBuilder fbb;
  /// Per payload, in order: its distance of the reference from the flatbuffer's end, and the
  /// constant.
  struct Hole {
    flatbuffers::uoffset_t from_end;
    const PlannedBuffer *buffer;
  };
  std::vector<Hole> holes;
  bool external = false;
};

struct HeaderRequest {
  WriteRequest what;
  WriteOptions options;
  std::span<const Signature> signatures;
  u32 version = 0;
};

/// Errors: kind Unsupported, `circle.write.too_large`, `circle.write.quantization`,
/// `circle.write.foreign`, `circle.operator.option`.
Status build_header(const HeaderRequest &request, const Plan &plan, Header &out);

} // namespace chute::circle

#pragma once

#include "ir/graph.h"
#include "pt2/zip.h"
#include "support/result.h"

#include <limits>
#include <span>
#include <string_view>

namespace chute::pt2 {

/// A tensor's storage and how the tensor lies in it.
struct TensorPayload {
  ir::ElementType element = ir::ElementType::None;
  std::span<const i64> sizes;
  std::span<const i64> strides; ///< in elements, one per dimension
  i64 offset = 0;               ///< in elements
  std::span<const std::byte> storage;
  std::shared_ptr<const void> owner;
  std::string_view where; ///< member name, for messages
};

/// Makes the graph's constant of a payload, a view of the storage. Everything is checked: sizes and
/// strides are not negative, every element lies inside the storage. A storage of no bytes under a
/// tensor with elements is a fake or meta weight and gives a constant without data. Errors:
/// BadInput `pt2.weight.range`, `pt2.weight.meta`; the object is the payload's `where`.
Result<const ir::Constant *> make_constant(ir::Graph &graph, const TensorPayload &payload,
                                           std::string_view name);

/// The weights and constants of one program, by their names in the signature.
class Payloads {
public:
  virtual ~Payloads() = default;
  enum class Section : u8 { Weights, Constants };
  static constexpr u32 kNoHint = std::numeric_limits<u32>::max();
  /// The same constant for the same view of the same storage (tied weights). `hint`: the name may
  /// be the section's entry of this position, which saves looking for it. Errors:
  /// `pt2.weight.missing`, `pt2.weight.pickle` (Unsupported: Python object), and make_constant's.
  virtual Result<const ir::Constant *> constant(ir::Graph &graph, Section section,
                                                std::string_view name, u32 hint = kNoHint) = 0;
};

} // namespace chute::pt2

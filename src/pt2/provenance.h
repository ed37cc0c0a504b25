#pragma once

#include "ir/location.h"

#include <memory>
#include <string_view>

namespace chute::pt2 {

/// Decodes a node's `metadata` only when somebody asks where the node came from. The key of a
/// record is the offset of the node's JSON object in the document, which the source keeps alive.
class NodeMetadata : public ir::ProvenanceSource {
public:
  NodeMetadata(std::string_view document, std::shared_ptr<const void> owner)
      : document_(document), owner_(std::move(owner)) {}

  /// module path and type: the last entry of `nn_module_stack` ("key,path,type;…"). Source line:
  /// the last frame of `stack_trace` outside of torch's own files, else the last one, as
  /// "file.py:41".
  void resolve(u64 key, ir::Provenance &out) const override;

private:
  std::string_view document_;
  std::shared_ptr<const void> owner_;
};

} // namespace chute::pt2

#pragma once

#include "ir/context.h"
#include "support/ints.h"

#include <memory>
#include <string>
#include <vector>

namespace chute::ir {

/// Handle of an operator's provenance in its Graph; 0 is "unknown".
struct LocId {
  u32 id = 0;
  friend bool operator==(LocId, LocId) = default;
};

/// Where an operator came from, resolved to text.
struct Provenance {
  std::vector<std::string> nodes; ///< original node names, oldest first
  std::string module_path;        ///< "layers.3.mlp.up_proj"
  std::string module_type;        ///< "torch.nn.modules.linear.Linear"
  std::string source_line;        ///< "model.py:41"
};

/// Resolves a source's raw metadata on demand: stack traces are long and nearly never looked at, so
/// a reader keeps them where they lie and decodes one when it is asked for.
class ProvenanceSource {
public:
  virtual ~ProvenanceSource() = default;
  /// Fills module_path, module_type and source_line for the record `key` (meaning is the source's).
  virtual void resolve(u64 key, Provenance &out) const = 0;
};

/// The provenance records of a graph: appended by readers, merged by rewrites.
class Locations {
public:
  explicit Locations(Context &ctx) : ctx_(ctx) { records_.resize(1); }

  /// A record that a source resolves later.
  LocId add(StringId node, const ProvenanceSource *source, u64 key);
  /// A record with its text known now.
  LocId add(StringId node, std::string_view module_path, std::string_view source_line,
            std::string_view module_type = {});
  /// Both origins (an operator made from two). Returns the other one when either is unknown or
  /// equal.
  LocId merge(LocId a, LocId b);

  Provenance resolve(LocId loc) const;
  /// The first original node name, without resolving anything; empty when unknown.
  std::string_view node_name(LocId loc) const;
  size_t size() const { return records_.size(); }
  /// Keeps a source alive as long as the graph.
  void keep(std::shared_ptr<const ProvenanceSource> source) {
    sources_.push_back(std::move(source));
  }

private:
  struct Record {
    StringId node;                            // 0 in merged records
    StringId module_path;                     // known text, or
    StringId source_line;                     //
    StringId module_type;                     //
    const ProvenanceSource *source = nullptr; // to be resolved with key
    u64 key = 0;                              // merged records: the two LocIds
  };
  Context &ctx_;
  std::vector<Record> records_;
  std::vector<std::shared_ptr<const ProvenanceSource>> sources_;
};

} // namespace chute::ir

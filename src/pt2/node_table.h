#pragma once

#include "ir/context.h"
#include "pt2/decode.h"
#include "pt2/form.h"
#include "pt2/json_scan.h"

#include <memory>
#include <vector>

namespace chute::pt2 {

/// What all nodes of one form have in common, and where they differ.
struct NodeForm {
  enum class Place : u8 { Input, Item, Output, NodeName };
  /// Where in `example` a name or number of a record belongs.
  struct Patch {
    Place place = Place::Input;
    u32 index = 0;
    bool is_number = false;
  };
  Decoded example;            ///< one node; strings view its document
  std::vector<Patch> patches; ///< in the order of the text

  const DecodedNode &node() const { return example.nodes[0]; }
  Item &item(const Patch &p) {
    return p.place == Place::Input  ? example.inputs[p.index].value
           : p.place == Place::Item ? example.items[p.index]
                                    : example.outputs[p.index];
  }
};

/// One node: an instance of a form, or a place in the document that is still to be decoded.
struct NodeRecord {
  static constexpr u32 kDecode = ~u32{0};
  u64 offset = 0;     ///< of its object in the document
  u32 form = kDecode; ///< index into NodeForms
  u32 name = 0;       ///< its first in NodeTable::names
  u32 number = 0;     ///< its first in NodeTable::numbers; of a node to be decoded, its size
};

/// A stretch of nodes before its names are interned; positions count from its begin.
struct NodePiece {
  std::vector<NodeRecord> nodes;
  std::vector<u32> names; ///< indices into `texts`
  std::vector<std::string_view> texts;
  std::vector<u64> numbers;
  static constexpr u32 kNoText = ~u32{0};
  u32 result = kNoText; ///< index of the last node's first result

  void clear() {
    nodes.clear();
    names.clear();
    texts.clear();
    numbers.clear();
    result = kNoText;
  }
};

/// The nodes of one graph object in order: about 40 bytes each, where its JSON has a thousand.
struct NodeTable {
  std::vector<NodeRecord> nodes;
  std::vector<ir::StringId> names;
  std::vector<u64> numbers; ///< an i64 or a double each

  /// Appends a piece and interns its names.
  void append(const NodePiece &piece, ir::Context &ctx, std::vector<ir::StringId> &scratch);
  /// Of a node to be decoded.
  std::string_view text(std::string_view document, const NodeRecord &r) const {
    return document.substr(r.offset, numbers[r.number]);
  }
};

/// The forms that a program's nodes have, and the walk that finds them.
class NodeForms {
public:
  NodeForms();
  ~NodeForms();

  /// Goes through the elements of an array from `at` (of an element) until about `bytes` are behind
  /// it. `at` becomes the place of the next element or, with `done`, the place behind the array.
  /// Nodes of a form that is not known yet are decoded to learn it; what does not decode is left to
  /// who decodes it again. False on text that is no array.
  bool walk(std::string_view document, u64 &at, u64 bytes, Decoder &decoder, NodePiece &piece,
            bool &done, ScanError &error);

  NodeForm &operator[](u32 form) { return *forms_[form]; }
  size_t size() const { return forms_.size(); }

private:
  u32 learn(std::string_view text, u64 offset, Decoder &decoder);
  void add(u64 offset, u32 form, const Filling *fillings, NodePiece &piece) const;

  FormTable table_;
  std::vector<std::unique_ptr<NodeForm>> forms_;
};

/// Writes a record's names and numbers over its form's example, which then is what decoding the
/// record gives.
void fill(NodeForm &form, const NodeTable &table, const NodeRecord &record, const ir::Context &ctx);

} // namespace chute::pt2

#include "pt2/node_table.h"

#include <algorithm>
#include <bit>

namespace chute::pt2 {

namespace {

/// `{"target": "torch.ops.aten.` and enough of the operator's name to tell most apart.
constexpr size_t kHead = 34;

/// Kinds whose meaning does not depend on the scope that the node is in.
bool is_plain(ArgTag tag) {
  switch (tag) {
  case ArgTag::SymInt:
  case ArgTag::SymFloat:
  case ArgTag::SymBool:
  case ArgTag::Graph:
  case ArgTag::CustomObj:
  case ArgTag::Unknown: return false;
  default: return true;
  }
}

bool is_plain(const Decoded &d) {
  for (const NamedItem &in : d.inputs)
    if (!is_plain(in.value.tag))
      return false;
  for (const Item &item : d.items)
    if (!is_plain(item.tag))
      return false;
  for (const Item &out : d.outputs)
    if (out.tag != ArgTag::Tensor && out.tag != ArgTag::Tensors && out.tag != ArgTag::None)
      return false;
  return true;
}

using Place = NodeForm::Place;

struct MarkedHole {
  Hole hole;
  NodeForm::Patch patch;
};

/// Everything in the text of a decoded node that another node may have differently, in the order of
/// the text. False when a name is not where it can be replaced.
bool find_holes(std::string_view text, const Decoded &d, const NodeMarks &marks,
                std::vector<MarkedHole> &out) {
  bool ok = true;
  const auto add = [&](std::string_view part, HoleKind kind, Place place, size_t index) {
    // A name with escapes lies elsewhere.
    if (part.data() < text.data() || part.data() + part.size() > text.data() + text.size()) {
      ok = false;
      return;
    }
    const bool number = kind == HoleKind::Integer || kind == HoleKind::Real;
    out.push_back({{kind, static_cast<u64>(part.data() - text.data()), part.size()},
                   {place, static_cast<u32>(index), number}});
  };
  const auto add_name = [&](const Item &item, Place place, size_t index) {
    if (item.tag == ArgTag::Tensor)
      add(item.string(), HoleKind::Text, place, index);
  };
  for (size_t i = 0; i < d.inputs.size(); ++i)
    add_name(d.inputs[i].value, Place::Input, i);
  for (size_t i = 0; i < d.items.size(); ++i)
    add_name(d.items[i], Place::Item, i);
  for (size_t i = 0; i < d.outputs.size(); ++i)
    add_name(d.outputs[i], Place::Output, i);
  if (!d.nodes[0].name.empty())
    add(d.nodes[0].name, HoleKind::Text, Place::NodeName, 0);
  for (const auto &[input, token] : marks.numbers) {
    const ArgTag tag = d.inputs[input].value.tag;
    if (tag == ArgTag::Int || tag == ArgTag::Float)
      add(token, tag == ArgTag::Int ? HoleKind::Integer : HoleKind::Real, Place::Input, input);
  }
  if (const char *p = marks.metadata.data())
    if (const char *behind = skip_strings(p, text.data() + text.size()))
      add({p, static_cast<size_t>(behind - p)}, HoleKind::Strings, Place::Input, 0);
  std::sort(out.begin(), out.end(),
            [](const MarkedHole &a, const MarkedHole &b) { return a.hole.offset < b.hole.offset; });
  return ok;
}

} // namespace

NodeForms::NodeForms() : table_(kHead) {}
NodeForms::~NodeForms() = default;

u32 NodeForms::learn(std::string_view text, u64 offset, Decoder &decoder) {
  table_.count_miss();
  auto form = std::make_unique<NodeForm>();
  NodeMarks marks;
  std::vector<MarkedHole> found;
  if (!decoder.node(text, offset, form->example, &marks) || marks.ambiguous ||
      !is_plain(form->example) || !find_holes(text, form->example, marks, found))
    return NodeRecord::kDecode;
  std::vector<Hole> holes;
  for (const MarkedHole &m : found) {
    holes.push_back(m.hole);
    if (m.hole.kind != HoleKind::Strings)
      form->patches.push_back(m.patch);
  }
  std::optional<Form> made = Form::of(text, holes);
  if (!made || table_.add(std::move(*made)) == FormTable::kNone)
    return NodeRecord::kDecode;
  forms_.push_back(std::move(form));
  return static_cast<u32>(forms_.size() - 1);
}

void NodeForms::add(u64 offset, u32 form, const Filling *fillings, NodePiece &piece) const {
  piece.nodes.push_back(
      {offset, form, static_cast<u32>(piece.names.size()), static_cast<u32>(piece.numbers.size())});
  // Most names are the last node's result, or the node's own: they are looked up once.
  u32 own = NodePiece::kNoText;
  for (const NodeForm::Patch &patch : forms_[form]->patches) {
    const Filling &f = *fillings++;
    if (patch.is_number) {
      piece.numbers.push_back(std::bit_cast<u64>(f.i));
      continue;
    }
    const std::string_view text = f.text();
    u32 index = static_cast<u32>(piece.texts.size());
    if (own != NodePiece::kNoText && piece.texts[own] == text)
      index = own;
    else if (piece.result != NodePiece::kNoText && piece.texts[piece.result] == text)
      index = piece.result;
    else
      piece.texts.push_back(text);
    if (patch.place == Place::Output && own == NodePiece::kNoText)
      own = index;
    piece.names.push_back(index);
  }
  if (own != NodePiece::kNoText)
    piece.result = own;
}

bool NodeForms::walk(std::string_view document, u64 &at, u64 bytes, Decoder &decoder,
                     NodePiece &piece, bool &done, ScanError &error) {
  done = false;
  piece.clear();
  const char *const begin = document.data(), *const end = begin + document.size();
  const u64 stop = at + bytes;
  Filling fillings[Form::kMaxHoles];
  while (at < stop) {
    const char *p = begin + at;
    u32 form = table_.match(p, end, fillings);
    if (form == FormTable::kNone) {
      const std::optional<u64> behind = skip_value(document, at, error);
      if (!behind)
        return false;
      p = begin + *behind;
      const std::string_view text = document.substr(at, *behind - at);
      form = table_.learns() ? learn(text, at, decoder) : NodeRecord::kDecode;
      if (form != NodeRecord::kDecode && !table_[form].match(begin + at, end, fillings))
        form = NodeRecord::kDecode;
      if (form == NodeRecord::kDecode) {
        piece.nodes.push_back({at, form, 0, static_cast<u32>(piece.numbers.size())});
        piece.numbers.push_back(text.size());
        piece.result = NodePiece::kNoText;
      }
    }
    if (form != NodeRecord::kDecode)
      add(at, form, fillings, piece);
    at = skip_space(document, static_cast<u64>(p - begin));
    if (at < document.size() && document[at] == ']') {
      ++at;
      done = true;
      return true;
    }
    if (at >= document.size() || document[at] != ',') {
      error = {at, "a comma or the end of the array was expected"};
      return false;
    }
    at = skip_space(document, at + 1);
  }
  return true;
}

void NodeTable::append(const NodePiece &piece, ir::Context &ctx,
                       std::vector<ir::StringId> &scratch) {
  scratch.resize(piece.texts.size());
  ctx.intern(piece.texts, scratch);
  const auto first_name = static_cast<u32>(names.size());
  const auto first_number = static_cast<u32>(numbers.size());
  for (NodeRecord r : piece.nodes) {
    r.name += first_name;
    r.number += first_number;
    nodes.push_back(r);
  }
  for (const u32 text : piece.names)
    names.push_back(scratch[text]);
  numbers.insert(numbers.end(), piece.numbers.begin(), piece.numbers.end());
}

void fill(NodeForm &form, const NodeTable &table, const NodeRecord &record,
          const ir::Context &ctx) {
  const ir::StringId *name = table.names.data() + record.name;
  const u64 *number = table.numbers.data() + record.number;
  DecodedNode &node = form.example.nodes[0];
  node.offset = record.offset;
  for (const NodeForm::Patch &patch : form.patches) {
    if (patch.is_number) {
      form.item(patch).i = std::bit_cast<i64>(*number++);
      continue;
    }
    const std::string_view text = ctx.string(*name++);
    if (patch.place == Place::NodeName) {
      node.name = text;
      continue;
    }
    Item &item = form.item(patch);
    item.s = text.data();
    item.count = static_cast<u32>(text.size());
  }
}

} // namespace chute::pt2

#include "pt2/node_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace chute::pt2 {
namespace {

std::string shown(const Decoded &d, const Item &item) {
  const std::string tag = std::to_string(static_cast<int>(item.tag)) + ":";
  switch (item.tag) {
  case ArgTag::None: return tag;
  case ArgTag::Int:
  case ArgTag::ScalarType:
  case ArgTag::Layout:
  case ArgTag::MemoryFormat: return tag + std::to_string(item.i);
  case ArgTag::Float: return tag + std::to_string(item.f);
  case ArgTag::Bool: return tag + (item.b ? "t" : "f");
  case ArgTag::Tensors:
  case ArgTag::Complex:
  case ArgTag::Ints:
  case ArgTag::Floats:
  case ArgTag::Bools:
  case ArgTag::Strings:
  case ArgTag::List:
  case ArgTag::Dict: {
    std::string out = tag + "[";
    for (u32 i = 0; i < item.count; ++i)
      out += shown(d, d.items[item.first + i]) + " ";
    return out + "]";
  }
  default: return tag + std::string(item.string());
  }
}

std::string shown(const Decoded &d) {
  const DecodedNode &n = d.nodes[0];
  std::string out =
      std::string(n.target) + " '" + std::string(n.name) + "' @" + std::to_string(n.offset);
  for (u32 i = 0; i < n.num_inputs; ++i)
    out += "\n  " + std::string(d.inputs[n.first_input + i].name) + " = " +
           shown(d, d.inputs[n.first_input + i].value);
  for (u32 i = 0; i < n.num_outputs; ++i)
    out += "\n  -> " + shown(d, d.outputs[n.first_output + i]);
  return out;
}

struct Walked {
  bool ok = false;
  size_t forms = 0, matched = 0;
  std::vector<std::string> nodes; ///< "?" for those left to be decoded
  std::vector<std::string> decoded;
};

/// Walks an array and shows every node twice: from its form, and decoded by itself.
Walked walk(const std::string &array, u64 piece_bytes = 1000) {
  std::string padded = array;
  padded.append(kJsonPadding, '}');
  const std::string_view document(padded.data(), array.size());
  Walked out;
  ir::Context ctx;
  NodeForms forms;
  NodeTable table;
  NodePiece piece;
  Decoder decoder;
  ScanError error;
  std::vector<ir::StringId> scratch;
  u64 at = 1;
  for (bool done = false; !done;) {
    if (!forms.walk(document, at, piece_bytes, decoder, piece, done, error))
      return out;
    table.append(piece, ctx, scratch);
  }
  EXPECT_EQ(at, array.size());
  out.ok = true;
  out.forms = forms.size();
  for (size_t i = 0; i < table.nodes.size(); ++i) {
    const NodeRecord &r = table.nodes[i];
    const u64 end = i + 1 < table.nodes.size() ? table.nodes[i + 1].offset - 2 : array.size() - 1;
    Decoded d;
    const bool decodes = decoder.node(document.substr(r.offset, end - r.offset), r.offset, d);
    out.decoded.push_back(decodes ? shown(d) : "malformed");
    if (r.form == NodeRecord::kDecode) {
      out.nodes.emplace_back("?");
      EXPECT_EQ(table.text(document, r), document.substr(r.offset, end - r.offset));
      continue;
    }
    ++out.matched;
    NodeForm &form = forms[r.form];
    fill(form, table, r, ctx);
    out.nodes.push_back(shown(form.example));
  }
  return out;
}

std::string metadata(int line) {
  return R"("metadata": {"stack_trace": "File \"m.py\", line )" + std::to_string(line) +
         R"(, in forward\n  x = \"\\\\\"", "torch_fn": "f"})";
}
std::string tensor(const std::string &name) {
  return R"({"as_tensor": {"name": ")" + name + "\"}}";
}

std::string quantize(int i, const std::string &scale) {
  const std::string self = "x_" + std::to_string(i), out = "x_" + std::to_string(i + 1);
  return R"({"target": "torch.ops.aten.fake_quantize.default", "inputs": [{"name": "self", "arg": )" +
         tensor(self) + R"(, "kind": 1}, {"name": "scale", "arg": {"as_float": )" + scale +
         R"(}, "kind": 1}, {"name": "zero_point", "arg": {"as_int": )" + std::to_string(i - 3) +
         R"(}, "kind": 1}], "outputs": [)" + tensor(out) + "], " + metadata(i) +
         R"(, "is_hop_single_tensor_return": null, "name": ")" + out + "\"}";
}
std::string cat(int i, int count) {
  std::string list;
  for (int k = 0; k < count; ++k)
    list += (k ? R"(, {"name": "x_)" : R"({"name": "x_)") + std::to_string(k) + "\"}";
  return R"({"target": "torch.ops.aten.cat.default", "inputs": [{"name": "tensors", "arg": {"as_tensors": [)" +
         list +
         R"(]}, "kind": 1}, {"name": "dim", "arg": {"as_int": 1}, "kind": 1}], "outputs": [)" +
         tensor("c_" + std::to_string(i)) + "], " + metadata(i) + "}";
}
std::string view(int i, const std::string &sizes) {
  return R"({"target": "torch.ops.aten.view.default", "inputs": [{"name": "self", "arg": )" +
         tensor("x_0") + R"(, "kind": 1}, {"name": "size", "arg": )" + sizes +
         R"(, "kind": 1}], "outputs": [)" + tensor("v_" + std::to_string(i)) + "], " + metadata(i) +
         R"(, "name": "v"})";
}

std::string array_of(const std::vector<std::string> &nodes) {
  std::string out = "[";
  for (const std::string &n : nodes)
    out += (out.size() > 1 ? ", " : "") + n;
  return out + "]";
}

TEST(NodeTable, NodesOfAFormAreWhatDecodingGives) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 40; ++i) {
    nodes.push_back(quantize(i, i % 3 ? "0.0" + std::to_string(i + 1) : "1e-05"));
    nodes.push_back(cat(i, 1 + i % 2));
    nodes.push_back(view(i, R"({"as_ints": [1, 8]})"));
  }
  for (const u64 piece : {u64{1}, u64{700}, u64{1} << 20}) {
    const Walked w = walk(array_of(nodes), piece);
    ASSERT_TRUE(w.ok);
    EXPECT_EQ(w.forms, 4u); // scales and zero points make no form of their own, lists of 1 and 2 do
    EXPECT_EQ(w.matched, nodes.size());
    EXPECT_EQ(w.nodes, w.decoded);
  }
}

TEST(NodeTable, WhatFormsCanNotHoldIsDecoded) {
  const std::vector<std::string> nodes = {
      view(0, R"({"as_sym_ints": [{"as_name": "s"}]})"), // depends on the scope
      view(1, R"({"as_graph": {"graph": {}}})"),
      view(2, R"({"as_int": 1, "as_float": 2.0})"), // two values: which one counts is the decoder's
      R"({"target": "torch.ops.aten.relu.default_of_a_long_name", "inputs": [], "outputs": [{"as_tensor": {"name": "\u0061"}}]})",
      R"({"target": "torch.ops.aten.relu.default_of_a_long_name", "inputs": 3})",
  };
  const Walked w = walk(array_of(nodes));
  ASSERT_TRUE(w.ok);
  EXPECT_EQ(w.nodes, std::vector<std::string>(nodes.size(), "?"));
}

TEST(NodeTable, FloatsThatAreNoNumbersStayInTheForm) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 4; ++i)
    nodes.push_back(quantize(i, i % 2 ? "\"Infinity\"" : "0.5"));
  const Walked w = walk(array_of(nodes));
  ASSERT_TRUE(w.ok);
  EXPECT_EQ(w.forms, 2u);
  EXPECT_EQ(w.nodes, w.decoded);
}

TEST(NodeTable, DescribesMalformedArrays) {
  for (const char *tail : {"", " ", "} ]", ", ]", ",", " 1]"}) {
    const std::string text = "[" + quantize(0, "1.0") + tail;
    EXPECT_FALSE(walk(text).ok) << tail;
  }
}

RC_GTEST_PROP(NodeTable, DamagedNodesMatchOnlyWhatTheyDecodeTo, ()) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 6; ++i) {
    nodes.push_back(quantize(i, "0.25"));
    nodes.push_back(cat(i, 2));
    nodes.push_back(view(i, R"({"as_ints": [1, 8]})"));
  }
  // One byte of a node in the middle becomes another; brackets and quotes stay paired, so that the
  // array is still one.
  std::string &node = nodes[6 + static_cast<size_t>(*rc::gen::inRange(0, 3))];
  const auto at = static_cast<size_t>(*rc::gen::inRange(1, static_cast<int>(node.size()) - 1));
  RC_PRE(std::string_view("{}[]\"\\,").find(node[at]) == std::string_view::npos &&
         node[at - 1] != '\\');
  node[at] = *rc::gen::elementOf(std::string("a0 9.-eE:\n\x01\xc3_\x7f"));
  const Walked w = walk(array_of(nodes));
  RC_ASSERT(w.ok);
  RC_ASSERT(w.nodes.size() == nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    RC_ASSERT(w.nodes[i] == "?" || w.nodes[i] == w.decoded[i]);
}

} // namespace
} // namespace chute::pt2

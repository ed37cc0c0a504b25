#pragma once

#include "support/ints.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace chute::pt2 {

/// What a JSON argument union holds. References to values keep their name as text.
enum class ArgTag : u8 {
  None,
  Tensor,  ///< string(): value name
  Tensors, ///< children Tensor or None
  Int,
  Float,
  Bool,
  String,
  Complex,  ///< two Float children
  SymInt,   ///< string(): value name
  SymFloat, ///< string(): value name
  SymBool,  ///< string(): value name
  Ints,     ///< children Int or SymInt
  Floats,   ///< children Float or SymFloat
  Bools,    ///< children Bool or SymBool
  Strings,  ///< children String
  ScalarType,
  Layout,
  MemoryFormat,
  Device,    ///< string(): "cuda:1"
  Graph,     ///< string(): the JSON text of the graph object
  CustomObj, ///< string(): value name
  Operator,  ///< string(): a target
  List,      ///< children of any kind (nested lists)
  Dict,      ///< children String, value, String, value, …
  Unknown,   ///< string(): the tag, from a newer format
};

/// One decoded argument: 16 bytes. Children lie in `Decoded::items`.
struct Item {
  ArgTag tag = ArgTag::None;
  u32 count = 0; ///< characters of the string, or number of children
  union {
    i64 i;
    double f;
    bool b;
    const char *s;
    u64 first; ///< index of the first child
  };
  Item() : i(0) {}
  std::string_view string() const { return {s, count}; }
};
static_assert(sizeof(Item) == 16);

struct NamedItem {
  std::string_view name;
  Item value;
};

struct DecodedNode {
  std::string_view target;
  std::string_view name; ///< empty before torch 2.11
  u64 offset = 0;        ///< of the node's object in the document
  u32 first_input = 0, num_inputs = 0;
  u32 first_output = 0, num_outputs = 0;
};

/// Decoded nodes, in storage that is reused from piece to piece. Strings view the document, or
/// `strings` where the document has escapes.
struct Decoded {
  std::vector<DecodedNode> nodes;
  std::vector<NamedItem> inputs;
  std::vector<Item> outputs;
  std::vector<Item> items;
  std::deque<std::string> strings;

  void clear() {
    nodes.clear();
    inputs.clear();
    outputs.clear();
    items.clear();
    strings.clear();
  }
};

/// Places in a node's text, for those who want to know what of it varies.
struct NodeMarks {
  /// Inputs whose argument is a number: position among the node's inputs, and the number's text.
  std::vector<std::pair<u32, std::string_view>> numbers;
  std::string_view metadata; ///< starts there
  bool ambiguous = false;    ///< one of the numbers may not be what was decoded: keys repeat
};

/// One entry of the graph signature.
struct Spec {
  enum class Kind : u8 {
    UserInput,
    Parameter,
    Buffer,
    TensorConstant,
    CustomObj,
    Token,
    ConstantInput,
    UserOutput,
    LossOutput,
    BufferMutation,
    ParameterMutation,
    InputMutation,
    GradientToParameter,
    GradientToInput,
    Unknown,
  };
  Kind kind = Kind::Unknown;
  std::string_view key;    ///< the union's tag
  Item arg;                ///< the value, or the literal of a constant input
  std::string_view target; ///< parameter, buffer, constant, object or input name
  bool persistent = true;  ///< of a buffer
};

/// A TensorMeta, undecided about symbols: dims are Int or String (srepr text) items.
struct RawTensorMeta {
  i64 dtype = 0;
  i64 layout = 7;
  std::vector<Item> sizes;
  std::vector<Item> strides;
  Item storage_offset;
  std::string_view device;
};

struct PayloadMeta {
  std::string_view path;
  bool use_pickle = false;
  std::string_view tensor_meta; ///< JSON text; empty when null
};

/// Turns pieces of JSON text into the structures above with simdjson's On-Demand parser. Every text
/// must be followed by kJsonPadding readable bytes. All functions return false on malformed text
/// and then `error()` and `error_offset()` (relative to the piece) say why and where. One instance
/// per thread.
class Decoder {
public:
  Decoder();
  ~Decoder();

  /// Appends one node.
  bool node(std::string_view text, u64 offset, Decoded &out, NodeMarks *marks = nullptr);
  bool argument(std::string_view text, Decoded &out, Item &item);
  bool spec(std::string_view text, Decoded &out, Spec &spec);
  bool tensor_meta(std::string_view text, Decoded &out, RawTensorMeta &meta);
  bool payload(std::string_view text, Decoded &out, PayloadMeta &meta);
  /// A symbolic value union ({"as_int": 3} or {"as_expr": {"expr_str": …}}): Int, Float, Bool, or
  /// String with the expression's srepr text.
  bool sym_value(std::string_view text, Decoded &out, Item &item);

  const std::string &error() const;
  u64 error_offset() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr size_t kJsonPadding = 64;

} // namespace chute::pt2

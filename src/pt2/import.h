#pragma once

#include "ir/graph.h"
#include "pt2/decode.h"
#include "pt2/json_scan.h"
#include "pt2/node_table.h"
#include "pt2/payload.h"
#include "pt2/provenance.h"
#include "pt2/reader.h"
#include "support/view_hash.h"

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace chute::pt2 {

/// A JSON member of the archive; its text is followed by kJsonPadding readable bytes.
struct Document {
  std::string member; ///< "simple/models/model.json"
  std::string_view text;
  std::shared_ptr<const void> owner;
  std::string at(u64 offset) const { return member + "@" + std::to_string(offset); }
  std::string_view slice(Extent e) const { return text.substr(e.offset, e.size); }
};

/// Where the parts of one graph object lie.
struct GraphText {
  u64 offset = 0;
  std::vector<Extent> inputs, outputs;
  NodeTable nodes;
  /// Tensors by name, with an index into the importer's distinct descriptions.
  struct TensorValue {
    ir::StringId name;
    u32 meta = 0;
  };
  std::vector<TensorValue> tensor_values;
  std::vector<Member> sym_int_values, sym_bool_values, sym_float_values;
};

/// How an operator's arguments map onto its table row; made once per target.
struct Target {
  enum class Kind : u8 {
    Registered,
    Unregistered,
    Inline,      ///< wrap_with_*: its body takes its place
    Autocast,    ///< the same, with the conversions that the mode makes
    ControlFlow, ///< regions
  };
  Kind kind = Kind::Unregistered;
  std::string name; ///< without "torch.ops."
  const ir::OpDef *def = nullptr;
  std::vector<ir::Attr> defaults; ///< by attribute slot, interned in the graph's context
  u64 required_attrs = 0;         ///< bits of slots without default
  /// Argument position -> where it goes, as the last node of this target had it.
  struct Slot {
    std::string_view name;
    i32 place = 0;
  };
  std::vector<Slot> slots;
  static constexpr i32 kIgnored = -1;
  static constexpr i32 kUnknown = std::numeric_limits<i32>::min();
  static i32 operand_place(size_t spec) { return -2 - static_cast<i32>(spec); }
  static size_t spec_of(i32 place) { return static_cast<size_t>(-2 - place); }
  /// A batch norm that writes its running statistics: the attribute that says so, and the operands.
  int training_attr = -1;
  std::vector<u32> statistics;
};

/// Builds the graph of one program. Used once.
class Importer {
public:
  Importer(ir::Graph &graph, const Document &document, Payloads &payloads,
           const ReadOptions &options, Diagnostics &diagnostics);
  ~Importer();
  /// Fills the graph and what the JSON says of itself.
  Status run(Summary &summary);

private:
  /// What a name stands for in the current scope.
  struct Name {
    ir::Value *value = nullptr;
    ir::Type type;
    i32 input = -1; ///< index into inputs_ of a payload that is made on first use
    u32 scope = 0;
  };
  struct Input {
    Spec spec;
    ir::StringId name;
    u32 hint = Payloads::kNoHint; ///< where the payload's table has it if the order is the same
    ir::Op *op = nullptr;         ///< detached until the end
    bool written = false;
  };
  /// One of the few descriptions that tensors have.
  struct Meta {
    Extent text;
    ir::Type type;    ///< once it was needed
    u32 follower = 0; ///< which came next the last time
  };
  class Scope;
  enum class Outcome : u8 { Done, Failed, Fallback };
  using Values = boost::container::small_vector<ir::Value *, 16>;
  using SymMap = boost::unordered_flat_map<u32, ir::Attr>;

  // Every function that returns bool (or a null pointer) on failure has set error_.
  bool fail(ErrorKind kind, const char *code, std::string message, std::string hint = {});
  bool bad(const char *code, std::string message) {
    return fail(ErrorKind::BadInput, code, std::move(message));
  }
  bool bad_json(u64 offset, std::string message);
  bool bad_scan(const ScanError &e);
  bool bad_decode(std::string_view piece);

  // import_program.cpp
  bool program(Summary &summary);
  bool header(std::string_view key, u64 offset, Summary &summary);
  bool ranges(u64 offset);
  bool signature(u64 offset, const GraphText &text);
  /// An entry of the signature, and its place.
  struct InputSpec {
    Spec spec;
    u64 offset = 0;
  };
  std::optional<u64> input_spec(u64 at, InputSpec &out, ScanError &e, bool &failed);
  void learn_spec(std::string_view json, const Spec &spec);
  bool add_input(const Spec &spec, const Item &arg, ir::StringId id);
  bool output_specs(const std::vector<Extent> &specs, std::vector<Spec> &out);
  bool outputs(const std::vector<Spec> &specs);
  bool finish_inputs();
  ir::Value *materialize(i32 input);
  std::optional<u64> graph_text(u64 offset, GraphText &out);

  // import_values.cpp
  bool values(const GraphText &text);
  bool sym_values(const std::vector<Member> &members, ArgTag kind);
  bool type_of_meta(Meta &meta);
  bool sym_expression(std::string_view srepr, ir::SymInt &out);
  std::string_view plain(std::string_view raw);
  Name *find(std::string_view name);
  Name &declare(ir::StringId id);
  ir::Value *value(std::string_view name);
  ir::Value *value(ir::StringId name);
  bool bind(std::string_view name, ir::Value *value);
  /// A symbolic reference or literal as Int, Float or Bool; None for a float only known at run
  /// time.
  bool sym_attr(const Item &item, ir::Attr &out);
  ir::Value *size_value(ir::Attr attr, ir::StringId name);
  ir::Value *scalar(ir::Attr attr, ir::ElementType element);
  ir::Value *append(ir::Op *op);

  // import_tables.cpp
  std::optional<u64> node_table(u64 offset, NodeTable &out, ScanError &e);
  std::optional<u64> node_table_ahead(u64 at, NodeTable &out, ScanError &e);
  std::optional<u64> tensor_table(u64 offset, std::vector<GraphText::TensorValue> &out,
                                  ScanError &e);
  std::optional<u32> meta_at(u64 &at, ScanError &e);

  // import.cpp
  bool nodes(const NodeTable &table);
  bool node(const Decoded &d, const DecodedNode &n);
  bool inline_graph(const Decoded &d, const DecodedNode &n);
  ir::Region *region(std::string_view text);

  // import_node.cpp
  Target &target(std::string_view text);
  i32 place(Target &t, size_t position, std::string_view name);
  Outcome registered(Target &t, const Decoded &d, const DecodedNode &n);
  /// Attributes and operands in the order of the operator's table.
  struct Arranged {
    boost::container::small_vector<ir::Attr, 12> attrs;
    boost::container::small_vector<const Item *, 16> operands; ///< null: an absent optional one
  };
  Outcome arrange(Target &t, const Decoded &d, const DecodedNode &n, Arranged &out);
  Outcome control_flow(Target &t, const Decoded &d, const DecodedNode &n);
  bool unregistered(Target &t, const Decoded &d, const DecodedNode &n);
  Outcome attr(const Decoded &d, const Item &item, const ir::AttrSpec &spec, ir::Attr &out);
  bool any_attr(const Decoded &d, const Item &item, Values &operands,
                std::vector<ir::Region *> &regions, ir::Attr &out, int depth = 0);
  Outcome operand(const Decoded &d, const Item &item, Values &out,
                  std::vector<std::pair<size_t, ir::Attr>> &scalars);
  bool fill_scalars(Values &operands, const std::vector<std::pair<size_t, ir::Attr>> &scalars);
  // import_packet.cpp
  bool fits(Target &t, const Decoded &d, const DecodedNode &n);
  /// The overload that a packet's name stands for with these arguments; null for none.
  Target *overload(const Target &packet, const Decoded &d, const DecodedNode &n);
  // import_numbers.cpp
  /// A float that is only known at run time, as a tensor of rank 0; null where it has no such form.
  ir::Value *float_tensor(const Item &item);
  ir::Value *cast(ir::Value *v, ir::ElementType element);
  Outcome float_arithmetic(const Decoded &d, const DecodedNode &n, const Target &t);
  /// An operand of control flow: a tensor, or a size.
  ir::Value *flow_operand(const Item &item);
  bool result_types(const Decoded &d, const DecodedNode &n);
  bool finish(ir::Op *op, const Target &t);
  void track_aliases(ir::Op *op, const Target &t);
  void set_alias(const ir::Value &value, u32 input);

  // import_plan.cpp
  /// How nodes of one form become operators. Positions of names and numbers are a record's.
  struct Plan {
    static constexpr u32 kNoName = ~u32{0};
    bool usable = false;
    Target *target = nullptr;
    std::vector<ir::Attr> attrs; ///< of the last node
    struct Operand {
      const Item *item = nullptr; ///< in the form's example; null: an absent optional one
      u32 name = kNoName;         ///< of a tensor
    };
    std::vector<Operand> operands;
    std::vector<u32> results; ///< names; kNoName: a result of None type
    u32 node_name = kNoName;
    struct Number {
      Item *item = nullptr; ///< in the form's example
      i32 attr = -1;        ///< the attribute that it is; -1: none
    };
    std::vector<Number> numbers;
  };
  void plan(NodeForm &form, Plan &out);
  /// Makes a node's operator by its form's plan. Fallback: the plan does not cover the node, and
  /// nothing was changed.
  Outcome planned(NodeForm &form, Plan &plan, const NodeTable &table, const NodeRecord &record);

  // import_autocast.cpp
  ir::ElementType autocast_element(const Decoded &d, const DecodedNode &n, u32 graph) const;
  /// Converts the operands of a new, detached operator as the region's autocast mode did.
  void apply_autocast(ir::Op *op);
  bool only_sizes(const Decoded &d, const DecodedNode &n, const Target &t);

  ir::Graph &graph_;
  ir::Context &ctx_;
  const Document &doc_;
  Payloads &payloads_;
  const ReadOptions &options_;
  Diagnostics &diagnostics_;
  std::shared_ptr<NodeMetadata> metadata_;
  Diagnostic error_;

  Decoder decoder_;
  Decoded scratch_; ///< of everything but nodes
  std::deque<std::string> strings_;

  std::vector<Name> names_; ///< by StringId
  SymMap syms_;             ///< of the current scope
  u32 scope_ = 1, last_scope_ = 1;
  u32 depth_ = 0; ///< of nested graphs
  std::vector<std::pair<u32, Name>> saved_;
  ir::Region *region_;
  /// What the surrounding wrap_with_autocast converts to; None outside and where it is switched
  /// off.
  ir::ElementType autocast_ = ir::ElementType::None;
  /// Rank-0 constants of the current region by element type and bits.
  boost::unordered_flat_map<u64, ir::Value *> scalars_[ir::kNumElementTypes];

  NodeForms forms_;
  std::vector<std::unique_ptr<Plan>> plans_; ///< by form

  std::vector<Meta> metas_;
  boost::unordered_flat_map<std::string_view, u32, ViewHash> meta_index_; ///< by text
  u32 last_meta_ = 0;
  boost::unordered_flat_map<u32, ir::SymInt> expressions_; ///< by the srepr text's StringId
  boost::unordered_flat_map<std::string_view, std::unique_ptr<Target>, ViewHash> targets_;
  /// Forms of the signature's entries, and which hole has the name and which the target.
  struct SpecForm {
    Spec example;
    i32 arg = 0, target = -1;
  };
  FormTable spec_table_{std::string_view("{\"buffer\": {").size()};
  std::vector<SpecForm> spec_forms_;
  u32 section_size_[2] = {}; ///< of the payloads, as far as the signature has named them
  boost::unordered_flat_map<const Target *, std::vector<Target *>> packets_;
  std::vector<Input> inputs_;
  /// By id, for values that alias a parameter or buffer: its index plus one. To find those that are
  /// written.
  std::vector<u32> aliases_;
  bool training_ = false;
  u64 node_count_ = 0;

  const DecodedNode *current_ = nullptr; ///< for messages
  ir::LocId loc_;
  // Reused from node to node.
  Decoded decoded_;
  std::vector<ir::Type> types_;
  std::vector<ir::StringId> result_names_;
};

} // namespace chute::pt2

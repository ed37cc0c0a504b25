#pragma once

#include "ir/constant.h"
#include "ir/context.h"
#include "ir/location.h"
#include "ir/op.h"
#include "support/slab.h"

#include <deque>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chute::ir {

enum class InputKind : u8 {
  User,    ///< a tensor, or a Python number that stays a run-time value
  Literal, ///< a Python argument specialised at export: no value, only its position and `literal`
  State,   ///< a buffer made an explicit input (`--state io`)
};

/// One input of the program, in the caller's order. Data of the graph: rewrites never change it.
struct InputInfo {
  std::string name;
  InputKind kind = InputKind::User;
  Value *value = nullptr; ///< the body's argument; null for Literal
  Attr literal;
};

enum class OutputKind : u8 {
  User,
  BufferMutation, ///< new content of the buffer `target`
  InputMutation,  ///< new content of the input `target`
  Literal,        ///< a Python number or None: no value
};

struct OutputInfo {
  std::string name;
  OutputKind kind = OutputKind::User;
  i32 operand = -1; ///< operand index of the body's `core.return`; -1 for Literal
  std::string target;
  Attr literal;
};

/// Hears of every change to a graph. The rewriter's worklist is one; at most one at a time.
class Listener {
public:
  virtual ~Listener() = default;
  virtual void inserted(Op &op) = 0;        ///< attached to a region
  virtual void operand_changed(Op &op) = 0; ///< an operand slot or an attribute was replaced
  /// A value lost a use and may be dead now; or gained uses that replaced another value's.
  virtual void uses_changed(Value &value) = 0;
  virtual void erased(Op &op) = 0; ///< about to be freed
  virtual void moving(Op &op) = 0; ///< about to leave its place; `inserted` tells of the new one
};

/// A program: one region of operators in SSA order, its interface, its constants, its provenance.
///
/// All links are intrusive: producer, users, next, previous, has-uses are O(1); erase, insert,
/// set_operand are O(1) per operand; replace_all_uses is O(uses). Destruction walks nothing.
/// Passes mutate through a Rewriter (pass/rewriter.h), which calls these.
class Graph {
public:
  explicit Graph(Context &ctx, std::string name = "main");
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  Context &context() const { return ctx_; }
  const std::string &name() const { return name_; }
  Region &body() { return *body_; }
  const Region &body() const { return *body_; }
  Locations &locations() { return locations_; }
  const Locations &locations() const { return locations_; }

  std::vector<InputInfo> &inputs() { return inputs_; }
  const std::vector<InputInfo> &inputs() const { return inputs_; }
  std::vector<OutputInfo> &outputs() { return outputs_; }
  const std::vector<OutputInfo> &outputs() const { return outputs_; }
  /// The body's terminator; null while the graph is being built.
  Op *return_op() const {
    Op *last = body_->back();
    return last && last->opcode() == core_op::ret ? last : nullptr;
  }

  // --- constants -------------------------------------------------------------------------------
  /// Takes a view: `data` stays valid as long as `owner` lives. `strides` are copied.
  const Constant *add_constant(Type type, const std::byte *data, std::shared_ptr<const void> owner,
                               std::span<const i64> strides = {}, bool has_data = true);
  /// A dense constant with its own zeroed buffer of dense_bytes(); fill it through `*bytes` before
  /// the constant is hashed or read.
  const Constant *add_buffer(Type type, std::byte **bytes);
  /// A dense constant holding a copy of `bytes`.
  const Constant *add_copy(Type type, std::span<const std::byte> bytes);
  const std::deque<Constant> &constants() const { return constants_; }

  // --- building --------------------------------------------------------------------------------
  Value *add_argument(Region &region, Type type, StringId name = {});
  Region *create_region();
  /// A detached operator. `operands` may hold nulls for absent optional operands. Attributes are in
  /// the order of the table and complete (see Builder for defaults). Regions are taken over.
  Op *create(OpCode code, std::span<Value *const> operands, std::span<const Attr> attrs,
             std::span<const Type> result_types, LocId loc = {},
             std::span<Region *const> regions = {});
  /// Frees an operator that was never attached, without telling the listener; its ids are given
  /// back when they are the newest. Regions that it was given stay the caller's.
  void discard(Op *op);
  void append(Region &region, Op *op) { insert_before(region, nullptr, op); }
  /// Inserts a detached `op` before `position` (null: at the end).
  void insert_before(Region &region, Op *position, Op *op);
  void insert_after(Op *position, Op *op);
  /// Moves an attached operator within or between regions; the caller keeps SSA order.
  void move_before(Op *op, Op *position);

  // --- changing --------------------------------------------------------------------------------
  void set_operand(Op *op, u32 index, Value *value);
  void set_attr(Op *op, u32 index, Attr value);
  void set_type(Value *value, Type type) { value->type_ = type; }
  void set_name(Value *value, StringId name) { value->name_ = name; }
  /// Every use of `from` becomes a use of `to`.
  void replace_all_uses(Value *from, Value *to);
  /// Unlinks and frees. Its results must be unused. Regions die with it.
  void erase(Op *op);
  /// Removes an unused argument; later arguments move down by one.
  void erase_argument(Region &region, u32 index);

  /// Returns the previous one, to be restored.
  Listener *set_listener(Listener *listener) {
    Listener *before = listener_;
    listener_ = listener;
    return before;
  }

  // --- sizes -----------------------------------------------------------------------------------
  u32 num_op_ids() const { return next_op_id_; }       ///< for side tables by Op::id
  u32 num_value_ids() const { return next_value_id_; } ///< for side tables by Value::id
  size_t num_ops() const { return num_ops_; }          ///< attached and detached, all regions
  /// Operators of one opcode, attached and detached. A pass asks before it goes through the graph.
  u32 count(OpCode code) const { return counts_[index(code)]; }
  /// Whether any operator of the graph has an opcode that fits. Cost: the opcodes there are.
  template <class Fits>
  bool has_any(Fits &&fits) const {
    for (u16 i = 0; i < kMaxOpCode; ++i)
      if (counts_[i] && fits(OpCode{i}))
        return true;
    return false;
  }
  size_t ir_bytes() const { return slab_.bytes_in_use(); }

private:
  static size_t block_bytes(u32 operands, u32 results, u32 attrs, u32 regions) {
    return sizeof(Op) + operands * sizeof(Use) + results * sizeof(Value) + attrs * sizeof(Attr) +
           regions * sizeof(Region *);
  }
  void link_use(Use &use, Value *value);
  static void unlink_use(Use &use);
  void unlink_op(Op *op);
  void destroy(Op *op);

  Context &ctx_;
  std::string name_;
  Slab slab_;
  std::deque<Region> regions_;
  Region *body_;
  Locations locations_;
  std::deque<Constant> constants_;
  std::deque<std::vector<i64>> constant_strides_;
  std::vector<InputInfo> inputs_;
  std::vector<OutputInfo> outputs_;
  u32 next_op_id_ = 0;
  u32 next_value_id_ = 0;
  size_t num_ops_ = 0;
  std::vector<u32> counts_ = std::vector<u32>(kMaxOpCode); // by opcode
  Listener *listener_ = nullptr;
};

} // namespace chute::ir

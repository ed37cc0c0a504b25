#pragma once

#include "ir/graph.h"
#include "support/result.h"

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

namespace chute::ir {

/// An attribute by name, for Builder calls: `{"dim", Attr::of_int(1)}`.
struct NamedAttr {
  std::string_view name;
  Attr value;
};

class ConstantPool;

/// Makes operators at an insertion point, with defaults filled in and result types inferred from
/// the operator's table.
class Builder {
public:
  /// Appends to `region`, or inserts before `position` when given.
  Builder(Graph &graph, Region &region, Op *position = nullptr)
      : graph_(graph), region_(&region), position_(position) {}

  Graph &graph() const { return graph_; }
  Context &context() const { return graph_.context(); }
  void set_insertion(Region &region, Op *position) {
    region_ = &region;
    position_ = position;
  }
  void set_loc(LocId loc) { loc_ = loc; }
  LocId loc() const { return loc_; }

  /// Operands in table order: one Value per One/Optional operand (null when absent), any number for
  /// a variadic one (with two or more variadic operands the attribute `segments` must be given).
  /// Attributes by name; missing ones take the table's default. An unknown name, a missing
  /// attribute without default or a type error is a Diagnostic.
  Result<Op *> try_create(OpCode code, std::span<Value *const> operands,
                          std::span<const NamedAttr> attrs = {});
  /// The same where failure is a fault in chute: CHUTE_CHECKs. Returns the first result.
  Value *create(OpCode code, std::initializer_list<Value *> operands,
                std::initializer_list<NamedAttr> attrs = {});
  Value *create(OpCode code, std::span<Value *const> operands,
                std::span<const NamedAttr> attrs = {});
  Op *create_op(OpCode code, std::span<Value *const> operands,
                std::span<const NamedAttr> attrs = {});
  /// With result types given by the caller instead of inferred (readers, type-changing rewrites).
  Op *create_typed(OpCode code, std::span<Value *const> operands, std::span<const NamedAttr> attrs,
                   std::span<const Type> result_types, std::span<Region *const> regions = {});

  /// Lets small constants come from, and go to, `pool` (null: made each time). Those that it finds
  /// must dominate the insertion point.
  void set_pool(ConstantPool *pool) { pool_ = pool; }

  Value *constant(const Constant *c, StringId name = {});
  /// A dense constant of that content.
  Value *constant(Type type, std::span<const std::byte> bytes);
  /// Small dense constants of shape [n] or rank 0.
  Value *constant_i32(std::span<const i32> values, bool scalar = false);
  Value *constant_i64(std::span<const i64> values, bool scalar = false);
  /// A rank-0 constant of any real element type; `value` is converted as torch does.
  Value *scalar(ElementType element, double value);
  Op *ret(std::span<Value *const> values);

private:
  Op *place(Op *op);

  Graph &graph_;
  Region *region_;
  Op *position_;
  LocId loc_;
  ConstantPool *pool_ = nullptr;
};

} // namespace chute::ir

#pragma once

#include "ir/attr.h"
#include "ir/location.h"
#include "ir/op_def.h"
#include "ir/type.h"
#include "support/ints.h"

#include <span>
#include <string_view>

namespace chute::ir {

struct Op;
class Region;
class Value;
class Graph;

/// One operand slot: a link in its value's use list. Optional operands may be absent (value null).
class Use {
public:
  Value *value() const { return value_; }
  Op *owner() const { return owner_; }
  Use *next() const { return next_; }
  u32 operand_index() const;
  /// Whether its value has no other use. Looks at nothing but this slot.
  bool is_only() const;

private:
  friend class Graph;
  Value *value_ = nullptr;
  Use *next_ = nullptr;
  Use **previous_link_ = nullptr;
  Op *owner_ = nullptr;
};

/// An SSA value: a result of an operator or an argument of a region.
class Value {
public:
  Type type() const { return type_; }
  u32 id() const { return id_; } ///< dense per Graph, never reused
  StringId name() const { return name_; }
  /// The operator that defines it; null for a region argument.
  Op *producer() const { return is_argument_ ? nullptr : owner_.op; }
  /// The region whose argument it is; null for a result.
  Region *argument_of() const { return is_argument_ ? owner_.region : nullptr; }
  u32 index() const { return index_; } ///< position among results or arguments

  bool has_uses() const { return first_use_ != nullptr; }
  bool has_one_use() const { return first_use_ && !first_use_->next(); }
  Use *first_use() const { return first_use_; }
  /// O(uses).
  size_t count_uses() const {
    size_t n = 0;
    for (Use *u = first_use_; u; u = u->next())
      ++n;
    return n;
  }

  /// Range over uses. The next use is read before the body runs, so the body may drop the current
  /// one.
  class UseIterator {
  public:
    explicit UseIterator(Use *u) : use_(u), next_(u ? u->next() : nullptr) {}
    Use &operator*() const { return *use_; }
    UseIterator &operator++() {
      use_ = next_;
      next_ = use_ ? use_->next() : nullptr;
      return *this;
    }
    bool operator!=(const UseIterator &o) const { return use_ != o.use_; }

  private:
    Use *use_;
    Use *next_;
  };
  struct UseRange {
    Use *first;
    UseIterator begin() const { return UseIterator(first); }
    UseIterator end() const { return UseIterator(nullptr); }
  };
  UseRange uses() const { return {first_use_}; }

private:
  friend class Graph;
  friend class Use;
  friend struct Op;
  Type type_;
  Use *first_use_ = nullptr;
  union Owner {
    Op *op;
    Region *region;
  } owner_{nullptr};
  u32 id_ = 0;
  StringId name_;
  u32 index_ : 31 = 0;
  u32 is_argument_ : 1 = 0;
};

/// An operator. Header, operands, results, attributes and regions lie in one slab block, in that
/// order. Made and destroyed by a Graph only.
struct Op {
  OpCode opcode() const { return opcode_; }
  const OpDef &def() const { return Registry::row(opcode_); }
  std::string_view name() const { return def().name; }
  trait::Set traits() const { return Registry::facts(opcode_).traits; }
  bool has(trait::Set t) const { return (traits() & t) == t; }
  u32 id() const { return id_; } ///< dense per Graph, never reused
  LocId loc() const { return loc_; }
  void set_loc(LocId loc) { loc_ = loc; }

  Op *next() const { return next_; }
  Op *previous() const { return previous_; }
  Region *parent() const { return parent_; } ///< null while detached

  u32 num_operands() const { return num_operands_; }
  u32 num_results() const { return num_results_; }
  u32 num_attrs() const { return num_attrs_; }
  u32 num_regions() const { return num_regions_; }

  Value *operand(u32 i) const { return operand_uses()[i].value(); }
  std::span<Use> operand_uses() const {
    return {reinterpret_cast<Use *>(const_cast<Op *>(this) + 1), num_operands_};
  }
  Value *result(u32 i = 0) const { return &results()[i]; }
  std::span<Value> results() const {
    return {reinterpret_cast<Value *>(operand_uses().data() + num_operands_), num_results_};
  }
  /// Attribute by its slot in the table.
  Attr attr(u32 i) const { return attrs()[i]; }
  /// Attribute by name; None when the table has no such field.
  Attr attr(std::string_view name) const {
    const int i = def().attr_index(name);
    return i < 0 ? Attr() : attrs()[static_cast<size_t>(i)];
  }
  std::span<const Attr> attrs() const {
    return {reinterpret_cast<const Attr *>(results().data() + num_results_), num_attrs_};
  }
  Region *region(u32 i) const { return regions()[i]; }
  std::span<Region *const> regions() const {
    return {reinterpret_cast<Region *const *>(attrs().data() + num_attrs_), num_regions_};
  }

  /// First operand and number of operands of the table's operand `spec` (a position in
  /// def().operands). Operators with two or more variadic operands carry the counts in their last
  /// attribute, `segments`.
  struct Segment {
    u32 first;
    u32 count;
  };
  Segment segment(u32 spec) const {
    return Registry::facts(opcode_).variadic == 0 ? Segment{spec, 1} : variadic_segment(spec);
  }
  /// The single operand of that table position; null when an optional one is absent.
  Value *arg(u32 spec) const {
    const Segment s = segment(spec);
    return s.count ? operand(s.first) : nullptr;
  }

  /// Asks for the memory of an operator that is looked at next. Null is fine, hence numbers:
  /// nothing may be added to a null pointer.
  static void prefetch(const Op *op) {
    const auto block = reinterpret_cast<std::uintptr_t>(op);
    __builtin_prefetch(reinterpret_cast<const void *>(block));
    __builtin_prefetch(reinterpret_cast<const void *>(block + 64));
    __builtin_prefetch(reinterpret_cast<const void *>(block + 128));
  }

private:
  friend class Graph;
  Segment variadic_segment(u32 spec) const;

  Op *previous_;
  Op *next_;
  Region *parent_;
  u32 id_;
  LocId loc_;
  OpCode opcode_;
  u16 num_attrs_;
  u16 num_regions_;
  u16 flags_;
  u32 num_operands_;
  u32 num_results_;
};
static_assert(sizeof(Op) == 48 && sizeof(Use) == 32 && sizeof(Value) == 40);

/// A list of operators in SSA order, with arguments. The last operator is a terminator.
class Region {
public:
  Op *front() const { return first_; }
  Op *back() const { return last_; }
  bool empty() const { return first_ == nullptr; }
  size_t num_ops() const { return num_ops_; }
  Op *parent_op() const { return parent_op_; } ///< null for a graph's body
  u32 num_args() const { return static_cast<u32>(args_.size()); }
  Value *arg(u32 i) const { return args_[i]; }
  std::span<Value *const> args() const { return args_; }

  /// Iterates in order; the body may erase the current operator or insert before it.
  class Iterator {
  public:
    explicit Iterator(Op *op) : op_(op), next_(op ? op->next() : nullptr) {}
    Op &operator*() const { return *op_; }
    Op *operator->() const { return op_; }
    Iterator &operator++() {
      op_ = next_;
      next_ = op_ ? op_->next() : nullptr;
      Op::prefetch(next_);
      return *this;
    }
    bool operator!=(const Iterator &o) const { return op_ != o.op_; }

  private:
    Op *op_;
    Op *next_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

private:
  friend class Graph;
  Op *first_ = nullptr;
  Op *last_ = nullptr;
  size_t num_ops_ = 0;
  Op *parent_op_ = nullptr;
  std::vector<Value *> args_;
};

inline bool Use::is_only() const {
  return value_ && !next_ && previous_link_ == &value_->first_use_;
}

inline u32 Use::operand_index() const {
  return static_cast<u32>(this - owner_->operand_uses().data());
}

} // namespace chute::ir

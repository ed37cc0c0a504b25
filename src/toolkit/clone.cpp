#include "toolkit/clone.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

class Cloner {
public:
  Cloner(const ir::Graph &from, ir::Graph &to) : from_(from), to_(to) {
    values_.assign(from.num_value_ids(), nullptr);
    locations_.assign(from.locations().size(), {});
    known_.assign(from.locations().size(), 0);
  }

  std::vector<Value *> run(std::span<Value *const> arguments) {
    for (u32 i = 0; i < from_.body().num_args(); ++i)
      values_[from_.body().arg(i)->id()] = arguments[i];
    for (const Op &op : from_.body())
      if (op.opcode() != ir::core_op::ret)
        copy(op, to_.body());
    while (!jobs_.empty()) {
      const auto [region, into] = jobs_.front();
      jobs_.pop_front();
      for (const Op &op : *region)
        copy(op, *into);
    }
    std::vector<Value *> out;
    if (const Op *ret = from_.return_op())
      for (const ir::Use &u : ret->operand_uses())
        out.push_back(u.value() ? values_[u.value()->id()] : nullptr);
    return out;
  }

private:
  void copy(const Op &op, ir::Region &into) {
    operands_.clear();
    for (const ir::Use &u : op.operand_uses())
      operands_.push_back(u.value() ? values_[u.value()->id()] : nullptr);
    attrs_.assign(op.attrs().begin(), op.attrs().end());
    for (ir::Attr &a : attrs_)
      if (a.kind() == ir::AttrKind::Constant)
        a = ir::Attr::of_constant(constant(*a.as_constant()));
    types_.clear();
    for (const Value &r : op.results())
      types_.push_back(r.type());
    std::vector<ir::Region *> regions;
    for (const ir::Region *r : op.regions()) {
      ir::Region *region = to_.create_region();
      for (const Value *a : r->args())
        values_[a->id()] = to_.add_argument(*region, a->type(), a->name());
      regions.push_back(region);
      jobs_.emplace_back(r, region);
    }
    Op *made = to_.create(op.opcode(), operands_, attrs_, types_, location(op.loc()), regions);
    to_.append(into, made);
    for (u32 i = 0; i < op.num_results(); ++i) {
      values_[op.result(i)->id()] = made->result(i);
      to_.set_name(made->result(i), op.result(i)->name());
    }
  }

  const ir::Constant *constant(const ir::Constant &c) {
    const auto [it, fresh] = constants_.try_emplace(&c, nullptr);
    if (fresh)
      it->second = to_.add_constant(c.type, c.data, c.owner, c.strides, c.has_data);
    return it->second;
  }

  ir::LocId location(ir::LocId loc) {
    if (loc.id == 0 || loc.id >= known_.size())
      return {};
    if (!known_[loc.id]) {
      known_[loc.id] = 1;
      const ir::Provenance p = from_.locations().resolve(loc);
      locations_[loc.id] = to_.locations().add(
          p.nodes.empty() ? ir::StringId() : to_.context().intern(p.nodes.front()), p.module_path,
          p.source_line, p.module_type);
    }
    return locations_[loc.id];
  }

  const ir::Graph &from_;
  ir::Graph &to_;
  std::vector<Value *> values_;      // by Value::id of `from`
  std::vector<ir::LocId> locations_; // by LocId of `from`
  std::vector<u8> known_;
  boost::unordered_flat_map<const ir::Constant *, const ir::Constant *> constants_;
  std::deque<std::pair<const ir::Region *, ir::Region *>> jobs_;
  // Of the operator that is being copied.
  std::vector<Value *> operands_;
  std::vector<ir::Attr> attrs_;
  std::vector<ir::Type> types_;
};

} // namespace

std::vector<Value *> clone_body(const ir::Graph &from, ir::Graph &to,
                                std::span<Value *const> arguments) {
  return Cloner(from, to).run(arguments);
}

} // namespace chute::toolkit

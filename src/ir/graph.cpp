#include "ir/graph.h"

#include "support/check.h"

#include <cstring>
#include <new>

namespace chute::ir {

Graph::Graph(Context &ctx, std::string name)
    : ctx_(ctx), name_(std::move(name)), body_(nullptr), locations_(ctx) {
  body_ = create_region();
}

Graph::~Graph() = default;

const Constant *Graph::add_constant(Type type, const std::byte *data,
                                    std::shared_ptr<const void> owner, std::span<const i64> strides,
                                    bool has_data) {
  CHUTE_CHECK(type.is_tensor() && type.has_static_shape(), "a constant has a static tensor type");
  Constant &c = constants_.emplace_back();
  c.type = type;
  c.data = data;
  c.owner = std::move(owner);
  c.has_data = has_data;
  c.id = static_cast<u32>(constants_.size() - 1);
  // Strides that describe dense row-major order are dropped, so that is_dense() is canonical.
  i64 expected = 1;
  bool dense = true;
  for (size_t i = strides.size(); i-- > 0;) {
    const i64 extent = type.shape()[i].value();
    dense &= extent <= 1 || strides[i] == expected;
    expected *= extent;
  }
  if (!dense && c.num_elements() > 0)
    c.strides = constant_strides_.emplace_back(strides.begin(), strides.end());
  return &c;
}

const Constant *Graph::add_buffer(Type type, std::byte **bytes) {
  Constant probe;
  probe.type = type;
  const size_t size = probe.dense_bytes();
  std::shared_ptr<std::byte[]> buffer(new std::byte[std::max<size_t>(size, 1)]());
  *bytes = buffer.get();
  const std::byte *data = buffer.get();
  return add_constant(type, data, std::shared_ptr<const void>(std::move(buffer), data));
}

const Constant *Graph::add_copy(Type type, std::span<const std::byte> bytes) {
  std::byte *to = nullptr;
  const Constant *c = add_buffer(type, &to);
  CHUTE_CHECK(bytes.size() == c->dense_bytes(), "bytes do not fit the constant's type");
  if (!bytes.empty())
    std::memcpy(to, bytes.data(), bytes.size());
  return c;
}

Region *Graph::create_region() { return &regions_.emplace_back(); }

Value *Graph::add_argument(Region &region, Type type, StringId name) {
  auto *v = new (slab_.allocate(sizeof(Value))) Value;
  v->type_ = type;
  v->owner_.region = &region;
  v->is_argument_ = 1;
  v->id_ = next_value_id_++;
  v->name_ = name;
  v->index_ = static_cast<u32>(region.args_.size()) & 0x7FFFFFFFu;
  region.args_.push_back(v);
  return v;
}

void Graph::erase_argument(Region &region, u32 index) {
  Value *v = region.args_[index];
  CHUTE_CHECK(!v->has_uses(), "argument still used");
  region.args_.erase(region.args_.begin() + index);
  for (size_t i = index; i < region.args_.size(); ++i)
    region.args_[i]->index_ = static_cast<u32>(i) & 0x7FFFFFFFu;
  slab_.deallocate(v, sizeof(Value));
}

Op *Graph::create(OpCode code, std::span<Value *const> operands, std::span<const Attr> attrs,
                  std::span<const Type> result_types, LocId loc, std::span<Region *const> regions) {
  const auto n_operands = static_cast<u32>(operands.size());
  const auto n_results = static_cast<u32>(result_types.size());
  const auto n_attrs = static_cast<u32>(attrs.size());
  const auto n_regions = static_cast<u32>(regions.size());
  Op *op = new (slab_.allocate(block_bytes(n_operands, n_results, n_attrs, n_regions))) Op;
  op->previous_ = op->next_ = nullptr;
  op->parent_ = nullptr;
  op->id_ = next_op_id_++;
  op->loc_ = loc;
  op->opcode_ = code;
  op->num_attrs_ = static_cast<u16>(n_attrs);
  op->num_regions_ = static_cast<u16>(n_regions);
  op->flags_ = 0;
  op->num_operands_ = n_operands;
  op->num_results_ = n_results;
  std::span<Use> uses = op->operand_uses();
  for (u32 i = 0; i < n_operands; ++i) {
    Use *use = new (&uses[i]) Use;
    use->owner_ = op;
    if (operands[i])
      link_use(*use, operands[i]);
  }
  std::span<Value> results = op->results();
  for (u32 i = 0; i < n_results; ++i) {
    auto *v = new (&results[i]) Value;
    v->type_ = result_types[i];
    v->owner_.op = op;
    v->id_ = next_value_id_++;
    v->index_ = i & 0x7FFFFFFFu;
  }
  auto *attr = const_cast<Attr *>(op->attrs().data());
  for (u32 i = 0; i < n_attrs; ++i)
    new (attr + i) Attr(attrs[i]);
  auto **region = const_cast<Region **>(op->regions().data());
  for (u32 i = 0; i < n_regions; ++i) {
    region[i] = regions[i];
    regions[i]->parent_op_ = op;
  }
  ++num_ops_;
  ++counts_[index(code)];
  return op;
}

void Graph::link_use(Use &use, Value *value) {
  use.value_ = value;
  use.next_ = value->first_use_;
  use.previous_link_ = &value->first_use_;
  if (use.next_)
    use.next_->previous_link_ = &use.next_;
  value->first_use_ = &use;
}

void Graph::unlink_use(Use &use) {
  *use.previous_link_ = use.next_;
  if (use.next_)
    use.next_->previous_link_ = use.previous_link_;
  use.value_ = nullptr;
  use.next_ = nullptr;
  use.previous_link_ = nullptr;
}

void Graph::insert_before(Region &region, Op *position, Op *op) {
  CHUTE_CHECK(!op->parent_, "operator is attached already");
  op->parent_ = &region;
  op->next_ = position;
  op->previous_ = position ? position->previous_ : region.last_;
  (op->previous_ ? op->previous_->next_ : region.first_) = op;
  (position ? position->previous_ : region.last_) = op;
  ++region.num_ops_;
  if (listener_)
    listener_->inserted(*op);
}

void Graph::insert_after(Op *position, Op *op) {
  insert_before(*position->parent_, position->next_, op);
}

void Graph::unlink_op(Op *op) {
  Region &region = *op->parent_;
  (op->previous_ ? op->previous_->next_ : region.first_) = op->next_;
  (op->next_ ? op->next_->previous_ : region.last_) = op->previous_;
  op->previous_ = op->next_ = nullptr;
  op->parent_ = nullptr;
  --region.num_ops_;
}

void Graph::move_before(Op *op, Op *position) {
  if (op == position)
    return;
  if (listener_)
    listener_->moving(*op);
  unlink_op(op);
  insert_before(*position->parent_, position, op);
}

void Graph::set_operand(Op *op, u32 index, Value *value) {
  Use &use = op->operand_uses()[index];
  if (use.value_ == value)
    return;
  Value *before = use.value_;
  if (before)
    unlink_use(use);
  if (value)
    link_use(use, value);
  if (listener_) {
    listener_->operand_changed(*op);
    if (before)
      listener_->uses_changed(*before);
  }
}

void Graph::set_attr(Op *op, u32 index, Attr value) {
  const_cast<Attr &>(op->attrs()[index]) = value;
  if (listener_)
    listener_->operand_changed(*op);
}

void Graph::replace_all_uses(Value *from, Value *to) {
  if (from == to)
    return;
  Use *first = from->first_use_;
  if (!first)
    return;
  Use *last = first;
  for (;; last = last->next_) {
    last->value_ = to;
    if (listener_)
      listener_->operand_changed(*last->owner_);
    if (!last->next_)
      break;
  }
  // The whole list moves to the front of the other one.
  last->next_ = to->first_use_;
  if (to->first_use_)
    to->first_use_->previous_link_ = &last->next_;
  to->first_use_ = first;
  first->previous_link_ = &to->first_use_;
  from->first_use_ = nullptr;
  if (listener_) {
    listener_->uses_changed(*from);
    listener_->uses_changed(*to);
  }
}

void Graph::discard(Op *op) {
  CHUTE_CHECK(!op->parent_, "an attached operator is erased, not discarded");
  for (Use &use : op->operand_uses())
    if (use.value_)
      unlink_use(use);
  for (const Value &v : op->results())
    CHUTE_CHECK(!v.has_uses(), "discarded operator has uses");
  for (Region *r : op->regions())
    r->parent_op_ = nullptr;
  const u32 results = op->num_results_;
  if (op->id_ + 1 == next_op_id_ &&
      (results == 0 || op->results()[results - 1].id_ + 1 == next_value_id_)) {
    --next_op_id_;
    next_value_id_ -= results;
  }
  --num_ops_;
  --counts_[index(op->opcode_)];
  slab_.deallocate(op, block_bytes(op->num_operands_, results, op->num_attrs_, op->num_regions_));
}

void Graph::destroy(Op *op) {
  if (listener_)
    listener_->erased(*op);
  // Detached before its uses go: of a value that it uses twice, the last user that a listener sees
  // is this operator, and must not look alive.
  if (op->parent_)
    unlink_op(op);
  for (Use &use : op->operand_uses())
    if (Value *value = use.value_) {
      unlink_use(use);
      if (listener_)
        listener_->uses_changed(*value);
    }
  --num_ops_;
  --counts_[index(op->opcode_)];
  slab_.deallocate(
      op, block_bytes(op->num_operands_, op->num_results_, op->num_attrs_, op->num_regions_));
}

void Graph::erase(Op *op) {
  for (const Value &v : op->results())
    CHUTE_CHECK(!v.has_uses(), "erased operator still has uses");
  // Regions nest as deep as the program's control flow; their operators go first, from the end so
  // that uses disappear before definitions. The work list replaces recursion.
  std::vector<Op *> pending;
  for (Region *r : op->regions())
    for (Op *inner = r->first_; inner; inner = inner->next_)
      pending.push_back(inner);
  for (size_t i = 0; i < pending.size(); ++i)
    for (Region *r : pending[i]->regions())
      for (Op *inner = r->first_; inner; inner = inner->next_)
        pending.push_back(inner);
  for (Op *inner : pending)
    for (Use &use : inner->operand_uses())
      if (Value *value = use.value_) {
        unlink_use(use);
        if (listener_)
          listener_->uses_changed(*value);
      }
  for (size_t i = pending.size(); i-- > 0;)
    destroy(pending[i]);
  destroy(op);
}

} // namespace chute::ir

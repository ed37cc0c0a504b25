// Nodes of a form that was met before: what the operator's table makes of their arguments is known,
// so only names and numbers are looked at.

#include "pt2/import.h"

#include <bit>

namespace chute::pt2 {

using ir::Attr;
using ir::ElementType;

void Importer::plan(NodeForm &form, Plan &out) {
  const Decoded &d = form.example;
  const DecodedNode &n = form.node();
  Target &t = target(n.target);
  Arranged arranged;
  if (t.kind != Target::Kind::Registered || arrange(t, d, n, arranged) != Outcome::Done)
    return;
  out.target = &t;
  out.attrs.assign(arranged.attrs.begin(), arranged.attrs.end());
  // Where each name and number of a record ends up.
  boost::unordered_flat_map<const Item *, u32> names;
  u32 name = 0;
  for (const NodeForm::Patch &patch : form.patches) {
    if (patch.is_number)
      out.numbers.push_back(
          {&form.item(patch), std::max(-1, place(t, patch.index, d.inputs[patch.index].name))});
    else if (patch.place == NodeForm::Place::NodeName)
      out.node_name = name++;
    else
      names.emplace(&form.item(patch), name++);
  }
  for (const Item *item : arranged.operands) {
    Plan::Operand operand{item, Plan::kNoName};
    if (item && item->tag == ArgTag::Tensor)
      operand.name = names.at(item);
    else if (item && item->tag != ArgTag::None && item->tag != ArgTag::Int &&
             item->tag != ArgTag::Float && item->tag != ArgTag::Bool)
      return;
    out.operands.push_back(operand);
  }
  const auto add_result = [&](const Item &item) {
    out.results.push_back(item.tag == ArgTag::Tensor ? names.at(&item) : Plan::kNoName);
  };
  for (const Item &output : d.outputs) {
    if (output.tag != ArgTag::Tensors)
      add_result(output);
    else
      for (u32 k = 0; k < output.count; ++k)
        add_result(d.items[output.first + k]);
  }
  bool variadic = false;
  for (const ir::ResultSpec &r : t.def->results)
    variadic |= r.variadic;
  if (!variadic && out.results.size() != t.def->results.size())
    return;
  if (out.node_name == Plan::kNoName && !d.outputs.empty() && d.outputs[0].tag == ArgTag::Tensor)
    out.node_name = out.results[0];
  out.usable = true;
}

Importer::Outcome Importer::planned(NodeForm &form, Plan &plan, const NodeTable &table,
                                    const NodeRecord &record) {
  if (!plan.usable)
    return Outcome::Fallback;
  const Target &t = *plan.target;
  const ir::StringId *names = table.names.data() + record.name;
  types_.clear();
  for (const u32 r : plan.results) {
    if (r == Plan::kNoName) {
      types_.push_back(ctx_.none_type());
      continue;
    }
    const u32 id = names[r].id;
    if (id == 0 || id >= names_.size())
      return Outcome::Fallback;
    const Name &known = names_[id];
    if (known.scope != scope_ || !known.type || known.value || known.input >= 0)
      return Outcome::Fallback;
    types_.push_back(known.type);
  }
  const u64 *number = table.numbers.data() + record.number;
  for (const Plan::Number &n : plan.numbers) {
    const auto bits = std::bit_cast<i64>(*number++);
    if (n.item->i == bits)
      continue;
    n.item->i = bits;
    if (n.attr < 0)
      continue;
    const auto slot = static_cast<size_t>(n.attr);
    if (attr(form.example, *n.item, t.def->attrs[slot], plan.attrs[slot]) != Outcome::Done) {
      plan.usable = false; // of one kind, all numbers fit or none does
      return Outcome::Fallback;
    }
  }
  Values operands;
  std::vector<std::pair<size_t, Attr>> scalars;
  for (const Plan::Operand &o : plan.operands) {
    operands.push_back(nullptr);
    if (o.name != Plan::kNoName) {
      // The way without a plan says what is wrong with a name.
      if (!(operands.back() = value(names[o.name])))
        return Outcome::Fallback;
    } else if (o.item && o.item->tag != ArgTag::None) {
      Attr a;
      sym_attr(*o.item, a);
      scalars.emplace_back(operands.size() - 1, a);
    }
  }
  const ir::LocId outer_loc = loc_;
  loc_ = graph_.locations().add(plan.node_name == Plan::kNoName ? ir::StringId()
                                                                : names[plan.node_name],
                                metadata_.get(), record.offset);
  if (!scalars.empty())
    fill_scalars(operands, scalars);
  ir::Op *op =
      graph_.create(t.def->opcode, {operands.data(), operands.size()}, plan.attrs, types_, loc_);
  if (autocast_ != ElementType::None)
    apply_autocast(op);
  loc_ = outer_loc;
  graph_.append(*region_, op);
  for (u32 i = 0; i < op->num_results(); ++i) {
    if (plan.results[i] == Plan::kNoName)
      continue;
    const ir::StringId id = names[plan.results[i]];
    Name &known = names_[id.id];
    if (known.value) {
      fill(form, table, record, ctx_);
      current_ = &form.node();
      bad("pt2.value.redefined",
          "value '" + std::string(ctx_.string(id).substr(0, 200)) + "' is defined twice");
      return Outcome::Failed;
    }
    known.value = op->result(i);
    graph_.set_name(known.value, id);
  }
  track_aliases(op, t);
  return Outcome::Done;
}

} // namespace chute::pt2

#include "circle/write_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace chute::circle {

namespace {

/// Old position to new: by origin, then in order of appearance. Empty when nothing moves.
template <class OriginOf>
std::vector<u32> new_places(size_t count, OriginOf &&origin_of) {
  bool sorted = true;
  for (size_t i = 1; i < count && sorted; ++i)
    sorted = origin_of(i - 1) <= origin_of(i);
  if (sorted)
    return {};
  std::vector<u32> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return origin_of(a) < origin_of(b); });
  std::vector<u32> place(count);
  for (u32 i = 0; i < count; ++i)
    place[order[i]] = i;
  return place;
}

template <class T>
void permute(std::vector<T> &items, const std::vector<u32> &place) {
  std::vector<T> out(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    out[place[i]] = std::move(items[i]);
  items = std::move(out);
}

void arrange_tensors(const Origin &origin, PlannedSubgraph &g) {
  if (g.origin == kNoOrigin)
    return;
  const u32 first = origin.first_tensor[g.origin], end = origin.first_tensor[g.origin + 1];
  const auto place = new_places(g.tensors.size(), [&](size_t i) {
    const u32 number = g.tensors[i].origin;
    return number >= first && number < end ? number : kNoOrigin;
  });
  if (place.empty())
    return;
  permute(g.tensors, place);
  for (std::vector<i32> *list : {&g.inputs, &g.outputs, &g.indices})
    for (i32 &t : *list)
      if (t >= 0)
        t = static_cast<i32>(place[static_cast<size_t>(t)]);
}

void arrange_buffers(Plan &plan) {
  const auto place =
      new_places(plan.buffers.size(), [&](size_t i) { return plan.buffers[i].origin; });
  if (place.empty())
    return;
  permute(plan.buffers, place);
  const auto move = [&](u32 &buffer) {
    if (buffer)
      buffer = place[buffer - 1] + 1;
  };
  for (PlannedSubgraph &g : plan.subgraphs)
    for (PlannedTensor &t : g.tensors)
      move(t.buffer);
  for (u32 &b : plan.metadata_buffers)
    move(b);
  for (u32 &b : plan.legacy_metadata)
    move(b);
}

/// Drops the codes whose last operator is gone.
void arrange_codes(Plan &plan, const std::vector<bool> &keep) {
  std::vector<bool> used = keep;
  used.resize(plan.codes.size(), false);
  for (const PlannedSubgraph &g : plan.subgraphs)
    for (const PlannedOp &o : g.ops)
      used[o.code] = true;
  std::vector<u32> place(plan.codes.size());
  std::vector<PlannedCode> codes;
  for (size_t i = 0; i < used.size(); ++i) {
    place[i] = static_cast<u32>(codes.size());
    if (used[i])
      codes.push_back(plan.codes[i]);
  }
  if (codes.size() == plan.codes.size())
    return;
  plan.codes = std::move(codes);
  for (PlannedSubgraph &g : plan.subgraphs)
    for (PlannedOp &o : g.ops)
      o.code = place[o.code];
}

/// Whether two types are written alike: every symbolic dimension is a -1.
bool same_type(ir::Type a, ir::Type b) {
  if (a == b || !a || !b)
    return a == b;
  if (a.element() != b.element() || a.quant() != b.quant() || a.rank() != b.rank())
    return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.dim(i) != b.dim(i) && !(a.dim(i).is_symbolic() && b.dim(i).is_symbolic()))
      return false;
  return true;
}

bool same_op(const PlannedOp &a, const PlannedOp &b) {
  if (a.code != b.code || a.inputs != b.inputs || a.intermediates != b.intermediates ||
      a.origin != b.origin || a.op->num_attrs() != b.op->num_attrs() ||
      a.op->num_results() != b.op->num_results())
    return false;
  for (u32 i = 0; i < a.op->num_attrs(); ++i)
    if (!(a.op->attr(i) == b.op->attr(i)))
      return false;
  return true;
}

bool same_subgraph(const PlannedSubgraph &a, const PlannedSubgraph &b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && a.indices == b.indices &&
         a.callees == b.callees &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    [](const PlannedTensor &x, const PlannedTensor &y) {
                      return same_type(x.type, y.type) && x.name == y.name &&
                             x.buffer == y.buffer && x.variable == y.variable &&
                             x.origin == y.origin && x.quant_changed == y.quant_changed;
                    }) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

/// A subgraph that several operators call was read once for each. Copies that are still alike
/// become one again.
void merge_copies(Plan &plan) {
  std::vector<u32> stands_for(plan.subgraphs.size());
  std::iota(stands_for.begin(), stands_for.end(), 0u);
  std::map<u32, std::vector<u32>> kept; // by origin
  bool merged = false;
  // What a subgraph calls comes after it, so its callees are settled before it is looked at.
  for (u32 i = static_cast<u32>(plan.subgraphs.size()); i-- > 0;) {
    PlannedSubgraph &g = plan.subgraphs[i];
    for (u32 &callee : g.callees)
      callee = stands_for[callee];
    if (g.origin == kNoOrigin)
      continue;
    std::vector<u32> &others = kept[g.origin];
    const auto twin = std::find_if(others.begin(), others.end(), [&](u32 other) {
      return same_subgraph(plan.subgraphs[other], g);
    });
    if (twin == others.end()) {
      others.push_back(i);
    } else {
      stands_for[i] = *twin;
      merged = true;
    }
  }
  if (!merged)
    return;
  std::vector<u32> place(plan.subgraphs.size());
  std::vector<PlannedSubgraph> left;
  for (u32 i = 0; i < place.size(); ++i)
    if (stands_for[i] == i) {
      place[i] = static_cast<u32>(left.size());
      left.push_back(std::move(plan.subgraphs[i]));
    }
  plan.subgraphs = std::move(left);
  for (PlannedSubgraph &g : plan.subgraphs)
    for (u32 &callee : g.callees)
      callee = place[callee];
  for (u32 &entry : plan.entries)
    entry = place[stands_for[entry]];
}

void arrange_subgraphs(Plan &plan) {
  const auto place = new_places(plan.subgraphs.size(), [&](size_t i) {
    return i == plan.entries[0] ? u64{0} : u64{plan.subgraphs[i].origin} + 1;
  });
  if (place.empty())
    return;
  permute(plan.subgraphs, place);
  for (PlannedSubgraph &g : plan.subgraphs)
    for (u32 &callee : g.callees)
      callee = place[callee];
  for (u32 &entry : plan.entries)
    entry = place[entry];
}

} // namespace

void arrange(const WriteRequest &request, const std::vector<bool> &kept_codes, Plan &plan) {
  for (PlannedSubgraph &g : plan.subgraphs)
    arrange_tensors(*request.origin, g);
  merge_copies(plan);
  arrange_subgraphs(plan);
  if (request.compact)
    return;
  arrange_buffers(plan);
  arrange_codes(plan, kept_codes);
}

} // namespace chute::circle

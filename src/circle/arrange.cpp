#include "circle/write_plan.h"

#include <algorithm>
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

void arrange_subgraphs(Plan &plan) {
  const auto place = new_places(plan.subgraphs.size(), [&](size_t i) {
    return i == 0 ? u64{0} : u64{plan.subgraphs[i].origin} + 1;
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
  arrange_subgraphs(plan);
  if (request.compact)
    return;
  arrange_buffers(plan);
  arrange_codes(plan, kept_codes);
}

} // namespace chute::circle

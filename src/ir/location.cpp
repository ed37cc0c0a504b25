#include "ir/location.h"

#include <algorithm>

namespace chute::ir {

LocId Locations::add(StringId node, const ProvenanceSource *source, u64 key) {
  Record r;
  r.node = node;
  r.source = source;
  r.key = key;
  records_.push_back(r);
  return {static_cast<u32>(records_.size() - 1)};
}

LocId Locations::add(StringId node, std::string_view module_path, std::string_view source_line,
                     std::string_view module_type) {
  Record r;
  r.node = node;
  r.module_path = ctx_.intern(module_path);
  r.source_line = ctx_.intern(source_line);
  r.module_type = ctx_.intern(module_type);
  records_.push_back(r);
  return {static_cast<u32>(records_.size() - 1)};
}

// A merged record is one with key set, no source and no node: key = first << 32 | second.
LocId Locations::merge(LocId a, LocId b) {
  if (a == b || b.id == 0)
    return a;
  if (a.id == 0)
    return b;
  Record r;
  r.key = static_cast<u64>(a.id) << 32 | b.id;
  records_.push_back(r);
  return {static_cast<u32>(records_.size() - 1)};
}

Provenance Locations::resolve(LocId loc) const {
  // A chain of merges can be long, so the walk keeps its own stack; it is cut where an error
  // message or a report could no longer use the names.
  constexpr size_t kMaxNodes = 64;
  Provenance out;
  std::vector<u32> stack{loc.id};
  while (!stack.empty() && out.nodes.size() < kMaxNodes) {
    const Record &r = records_[stack.back()];
    stack.pop_back();
    if (!r.source && r.key) {
      stack.push_back(static_cast<u32>(r.key));
      stack.push_back(static_cast<u32>(r.key >> 32));
      continue;
    }
    if (r.node) {
      std::string name(ctx_.string(r.node));
      if (std::find(out.nodes.begin(), out.nodes.end(), name) == out.nodes.end())
        out.nodes.push_back(std::move(name));
    }
    if (!out.module_path.empty() || !out.source_line.empty() || !out.module_type.empty())
      continue; // the first origin that knows its place gives the place
    if (r.source) {
      r.source->resolve(r.key, out);
    } else {
      out.module_path = ctx_.string(r.module_path);
      out.source_line = ctx_.string(r.source_line);
      out.module_type = ctx_.string(r.module_type);
    }
  }
  return out;
}

std::string_view Locations::node_name(LocId loc) const {
  u32 id = loc.id;
  for (;;) {
    const Record &r = records_[id];
    if (r.source || !r.key)
      return ctx_.string(r.node);
    id = static_cast<u32>(r.key >> 32);
  }
}

} // namespace chute::ir

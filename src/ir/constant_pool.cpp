#include "ir/constant_pool.h"

#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::ir {

u64 ConstantPool::hash(const Region &region, Type type, std::span<const std::byte> bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(),
                              reinterpret_cast<u64>(&region) + type.id() * 0x9E3779B97F4A7C15ull);
}

Value *ConstantPool::find(const Region &region, Type type, std::span<const std::byte> bytes) const {
  const auto it = values_.find(hash(region, type, bytes));
  if (it == values_.end())
    return nullptr;
  // A pass may have changed it since: its type, or its content.
  Value *v = it->second;
  const Attr attr = v->producer()->attr(0);
  if (v->type() != type || v->producer()->parent() != &region || attr.kind() != AttrKind::Constant)
    return nullptr;
  const Constant &c = *attr.as_constant();
  if (c.type != type || !c.has_data || !c.is_dense() || c.dense_bytes() != bytes.size())
    return nullptr;
  if (!bytes.empty() && std::memcmp(c.data, bytes.data(), bytes.size()) != 0)
    return nullptr;
  return v;
}

void ConstantPool::add(const Region &region, Type type, std::span<const std::byte> bytes,
                       Value *value) {
  const u64 key = hash(region, type, bytes);
  values_.insert_or_assign(key, value);
  keys_.insert_or_assign(value->producer()->id(), key);
}

void ConstantPool::erased(const Op &constant) {
  const auto it = keys_.find(constant.id());
  if (it == keys_.end())
    return;
  if (const auto value = values_.find(it->second);
      value != values_.end() && value->second == constant.result())
    values_.erase(value);
  keys_.erase(it);
}

} // namespace chute::ir

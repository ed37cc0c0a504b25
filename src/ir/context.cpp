#include "ir/context.h"

#include "ir/op_def.h"
#include "ir/sym_table.h"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstring>
#include <deque>
#include <memory_resource>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::ir {

i64 Type::num_elements() const {
  i64 n = 1;
  for (SymInt d : shape())
    if (d.value() == 0)
      return 0;
  for (SymInt d : shape())
    if (__builtin_mul_overflow(n, d.value(), &n))
      return std::numeric_limits<i64>::max();
  return n;
}

namespace {

struct BytesKey {
  std::string_view bytes;
  u32 tag; // keeps lists of different kinds apart
  bool operator==(const BytesKey &) const = default;
};
struct BytesHash {
  using is_avalanching = void;
  size_t operator()(const BytesKey &k) const {
    return XXH3_64bits_withSeed(k.bytes.data(), k.bytes.size(), k.tag);
  }
};

/// Interned strings by content: open addressing, with part of the hash beside each id so that a
/// probe touches a string only when it is the right one.
class StringTable {
public:
  StringTable() : slots_(1024), strings_(1), hashes_(1) {}

  std::string_view operator[](u32 id) const { return strings_[id]; }
  static u64 hash(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }
  void prefetch_slot(u64 hash) const { __builtin_prefetch(&slots_[hash & mask()]); }
  /// The view of the string that probably is the one looked for.
  void prefetch_view(u64 hash) const {
    if (const Slot &s = slots_[hash & mask()]; s.id)
      __builtin_prefetch(&strings_[s.id]);
  }
  void prefetch_text(u64 hash) const {
    if (const Slot &s = slots_[hash & mask()]; s.id && s.tag == tag(hash))
      __builtin_prefetch(strings_[s.id].data());
  }
  /// 0 when absent.
  u32 find(std::string_view text, u64 hash) const {
    for (u64 i = hash & mask(); slots_[i].id; i = (i + 1) & mask())
      if (slots_[i].tag == tag(hash) && strings_[slots_[i].id] == text)
        return slots_[i].id;
    return 0;
  }
  /// The same for a text that probably is at `id` or shortly behind it.
  u32 find_near(u32 id, std::string_view text) const {
    constexpr u32 kNear = 4;
    for (u32 i = id; i < id + kNear && i < strings_.size(); ++i)
      if (strings_[i] == text)
        return i;
    return 0;
  }
  /// `stored` must be absent and outlive the table.
  u32 insert(std::string_view stored, u64 hash) {
    if ((strings_.size() + 1) * 2 > slots_.size())
      grow();
    const auto id = static_cast<u32>(strings_.size());
    strings_.push_back(stored);
    hashes_.push_back(hash);
    place(id, hash);
    return id;
  }

private:
  struct Slot {
    u32 tag = 0, id = 0;
  };
  static u32 tag(u64 hash) { return static_cast<u32>(hash >> 32); }
  u64 mask() const { return slots_.size() - 1; }
  void place(u32 id, u64 hash) {
    u64 i = hash & mask();
    while (slots_[i].id)
      i = (i + 1) & mask();
    slots_[i] = {tag(hash), id};
  }
  void grow() {
    slots_.assign(slots_.size() * 2, Slot());
    for (u32 id = 1; id < strings_.size(); ++id)
      place(id, hashes_[id]);
  }

  std::vector<Slot> slots_;               // a power of two, at most half full
  std::vector<std::string_view> strings_; // by id; the first is the empty string
  std::vector<u64> hashes_;               // by id
};

struct TypeHash {
  using is_avalanching = void;
  size_t operator()(const TypeStorage *t) const {
    const u64 head = static_cast<u64>(t->kind) << 8 | static_cast<u64>(t->element);
    return XXH3_64bits_withSeed(t->shape.data(), t->shape.size_bytes(),
                                head ^ reinterpret_cast<u64>(t->quant));
  }
};
struct TypeEqual {
  bool operator()(const TypeStorage *a, const TypeStorage *b) const {
    return a->kind == b->kind && a->element == b->element && a->quant == b->quant &&
           a->shape.size() == b->shape.size() &&
           (a->shape.empty() ||
            std::memcmp(a->shape.data(), b->shape.data(), a->shape.size_bytes()) == 0);
  }
};

struct QuantHash {
  using is_avalanching = void;
  size_t operator()(const Quantization *q) const {
    u64 h = XXH3_64bits_withSeed(q->scales.data(), q->scales.size_bytes(),
                                 static_cast<u64>(q->kind) + static_cast<u64>(q->axis) * 31 +
                                     static_cast<u64>(q->block_size) * 1009);
    return XXH3_64bits_withSeed(q->zero_points.data(), q->zero_points.size_bytes(), h);
  }
};
struct QuantEqual {
  template <class T>
  static bool same(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }
  bool operator()(const Quantization *a, const Quantization *b) const {
    return a->kind == b->kind && a->axis == b->axis && a->block_size == b->block_size &&
           same(a->scales, b->scales) && same(a->zero_points, b->zero_points);
  }
};

} // namespace

struct Context::Impl {
  // Never freed one by one: interned things live as long as the Context.
  std::pmr::monotonic_buffer_resource memory{1 << 16};
  size_t bytes = 0;
  StringTable strings;
  u32 expected = 1; // texts come in the order of their ids when a program lists them again
  boost::unordered_flat_map<BytesKey, const ArrayStorage *, BytesHash> arrays;
  boost::unordered_flat_set<const TypeStorage *, TypeHash, TypeEqual> types;
  boost::unordered_flat_set<const Quantization *, QuantHash, QuantEqual> quants;
  u32 next_type_id = 0;
  Type none, int_, float_, bool_, opaque;

  template <class T>
  T *allocate(size_t n) {
    bytes += n * sizeof(T);
    return static_cast<T *>(memory.allocate(n * sizeof(T), std::max(alignof(T), size_t{8})));
  }
  template <class T>
  std::span<const T> copy(std::span<const T> from) {
    if (from.empty())
      return {};
    T *to = allocate<T>(from.size());
    std::memcpy(static_cast<void *>(to), from.data(), from.size_bytes());
    return {to, from.size()};
  }
  StringId intern(std::string_view text, u64 hash) {
    if (text.empty())
      return {};
    if (const u32 id = strings.find(text, hash))
      return {id};
    char *stored = allocate<char>(text.size());
    std::memcpy(stored, text.data(), text.size());
    return {strings.insert({stored, text.size()}, hash)};
  }
  Type intern_type(TypeStorage key) {
    if (auto it = types.find(&key); it != types.end())
      return Type(*it);
    key.shape = copy(key.shape);
    key.id = next_type_id++;
    auto *stored = new (allocate<TypeStorage>(1)) TypeStorage(key);
    types.insert(stored);
    return Type(stored);
  }
  Attr array(AttrKind kind, const void *data, size_t count, size_t element_size) {
    const BytesKey key{{static_cast<const char *>(data), count * element_size},
                       static_cast<u32>(kind)};
    if (auto it = arrays.find(key); it != arrays.end())
      return Attr::of_array(kind, it->second);
    // Default values of attributes are interned by the registry. Sharing its storage keeps equality
    // of attributes a comparison of pointers, whether a value was given or is the default.
    if (const Impl *defaults = Registry::global().context().impl_.get(); defaults != this)
      if (auto it = defaults->arrays.find(key); it != defaults->arrays.end()) {
        arrays.emplace(it->first, it->second);
        return Attr::of_array(kind, it->second);
      }
    char *stored = allocate<char>(std::max<size_t>(key.bytes.size(), 1));
    std::copy(key.bytes.begin(), key.bytes.end(), stored); // memcpy may not be given a null source
    auto *storage = new (allocate<ArrayStorage>(1)) ArrayStorage{stored, count};
    arrays.emplace(BytesKey{{stored, key.bytes.size()}, key.tag}, storage);
    return Attr::of_array(kind, storage);
  }
};

Context::Context() : impl_(std::make_unique<Impl>()), sym_(std::make_unique<SymTable>()) {
  const auto simple = [&](TypeKind kind) {
    TypeStorage t;
    t.kind = kind;
    return impl_->intern_type(t);
  };
  impl_->none = simple(TypeKind::None);
  impl_->int_ = simple(TypeKind::Int);
  impl_->float_ = simple(TypeKind::Float);
  impl_->bool_ = simple(TypeKind::Bool);
  impl_->opaque = simple(TypeKind::Opaque);
}

Context::~Context() = default;

StringId Context::intern(std::string_view text) {
  return impl_->intern(text, StringTable::hash(text));
}

void Context::intern(std::span<const std::string_view> texts, std::span<StringId> ids) {
  constexpr size_t kBatch = 32; // look-ups under way at a time
  const StringTable &table = impl_->strings;
  for (size_t first = 0; first < texts.size(); first += kBatch) {
    const size_t n = std::min(kBatch, texts.size() - first);
    std::array<u64, kBatch> hashes;
    std::array<u32, kBatch> left; // those that did not follow the one before
    size_t count = 0;
    for (size_t i = 0; i < n; ++i) {
      ids[first + i] = {table.find_near(impl_->expected, texts[first + i])};
      if (ids[first + i]) {
        impl_->expected = ids[first + i].id + 1;
        continue;
      }
      left[count] = static_cast<u32>(first + i);
      table.prefetch_slot(hashes[count++] = StringTable::hash(texts[first + i]));
    }
    for (size_t i = 0; i < count; ++i)
      table.prefetch_view(hashes[i]);
    for (size_t i = 0; i < count; ++i)
      table.prefetch_text(hashes[i]);
    for (size_t i = 0; i < count; ++i)
      ids[left[i]] = impl_->intern(texts[left[i]], hashes[i]);
    if (count && left[count - 1] + 1 == first + n)
      impl_->expected = ids[left[count - 1]].id + 1;
  }
}

std::string_view Context::string(StringId id) const { return impl_->strings[id.id]; }

Type Context::none_type() const { return impl_->none; }
Type Context::int_type() const { return impl_->int_; }
Type Context::float_type() const { return impl_->float_; }
Type Context::bool_type() const { return impl_->bool_; }
Type Context::opaque_type() const { return impl_->opaque; }

Type Context::tensor_type(ElementType element, std::span<const SymInt> shape,
                          const Quantization *quant) {
  TypeStorage key;
  static_assert(kNumElementTypes <= 64);
  elements_ |= u64{1} << static_cast<unsigned>(element);
  key.kind = TypeKind::Tensor;
  key.element = element;
  key.shape = shape;
  key.quant = quant;
  return impl_->intern_type(key);
}

const Quantization *Context::quantization(const Quantization &given) {
  // One form per meaning, so that equal types have one handle: absent zero points are zeros, and
  // what a kind does not use is 0.
  Quantization q = given;
  std::vector<i64> zeros;
  if (q.zero_points.empty() && !q.scales.empty()) {
    zeros.resize(q.scales.size(), 0);
    q.zero_points = zeros;
  }
  if (q.kind == QuantKind::PerTensor)
    q.axis = 0;
  if (q.kind == QuantKind::PerTensor || q.kind == QuantKind::PerChannel)
    q.block_size = 0;
  if (auto it = impl_->quants.find(&q); it != impl_->quants.end())
    return *it;
  Quantization stored = q;
  stored.scales = impl_->copy(q.scales);
  stored.zero_points = impl_->copy(q.zero_points);
  auto *kept = new (impl_->allocate<Quantization>(1)) Quantization(stored);
  impl_->quants.insert(kept);
  return kept;
}

Attr Context::string_attr(std::string_view text) {
  return impl_->array(AttrKind::String, text.data(), text.size(), 1);
}
Attr Context::ints_attr(std::span<const SymInt> values) {
  return impl_->array(AttrKind::Ints, values.data(), values.size(), sizeof(SymInt));
}
Attr Context::floats_attr(std::span<const double> values) {
  return impl_->array(AttrKind::Floats, values.data(), values.size(), sizeof(double));
}
Attr Context::bools_attr(std::span<const bool> values) {
  return impl_->array(AttrKind::Bools, values.data(), values.size(), sizeof(bool));
}
Attr Context::strings_attr(std::span<const std::string_view> values) {
  // Interned strings have one address each, so views of them compare bitwise.
  std::vector<std::string_view> stable;
  stable.reserve(values.size());
  for (std::string_view v : values)
    stable.push_back(string(intern(v)));
  return impl_->array(AttrKind::Strings, stable.data(), stable.size(), sizeof(std::string_view));
}
Attr Context::list_attr(std::span<const Attr> values) {
  // Attr has padding after its kind; copy into zeroed storage so that bytes decide equality.
  std::vector<Attr> clean(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    std::memset(static_cast<void *>(&clean[i]), 0, sizeof(Attr));
    const AttrKind kind = values[i].kind();
    const u64 payload = values[i].payload();
    std::memcpy(reinterpret_cast<char *>(&clean[i]), &kind, sizeof(kind));
    std::memcpy(reinterpret_cast<char *>(&clean[i]) + 8, &payload, sizeof(payload));
  }
  return impl_->array(AttrKind::List, clean.data(), clean.size(), sizeof(Attr));
}
Attr Context::complex_attr(double real, double imaginary) {
  const double parts[2] = {real, imaginary};
  return impl_->array(AttrKind::Complex, parts, 2, sizeof(double));
}

size_t Context::bytes() const { return impl_->bytes; }

} // namespace chute::ir

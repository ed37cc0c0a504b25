#include "pt2/payload.h"

#include <boost/container/small_vector.hpp>
#include <cstring>
#include <limits>

namespace chute::pt2 {

namespace {

tl::unexpected<Diagnostic> bad(const char *code, std::string_view name, const TensorPayload &p,
                               const std::string &what, std::string hint = {}) {
  return fail(ErrorKind::BadInput, code,
              "tensor '" + std::string(name.substr(0, 200)) + "' " + what, std::string(p.where),
              std::move(hint));
}

/// More than any address space: what claims it is damaged.
constexpr i64 kMaxElements = i64{1} << 44;

} // namespace

Result<const ir::Constant *> make_constant(ir::Graph &graph, const TensorPayload &p,
                                           std::string_view name) {
  if (p.sizes.size() != p.strides.size())
    return bad("pt2.weight.meta", name, p, "has not as many strides as sizes");
  i64 elements = 1;
  for (const i64 n : p.sizes) {
    if (n < 0)
      return bad("pt2.weight.meta", name, p, "has a negative size");
    if (__builtin_mul_overflow(elements, n, &elements) || elements > kMaxElements)
      return bad("pt2.weight.meta", name, p, "has an absurd size");
  }
  // Largest element index; all strides count upward.
  i64 last = p.offset;
  bool fits = p.offset >= 0;
  for (size_t i = 0; i < p.sizes.size(); ++i) {
    if (p.strides[i] < 0)
      return bad("pt2.weight.meta", name, p, "has a negative stride");
    i64 reach = 0;
    fits &= !__builtin_mul_overflow(std::max<i64>(p.sizes[i] - 1, 0), p.strides[i], &reach) &&
            !__builtin_add_overflow(last, reach, &last);
  }
  ir::Context &ctx = graph.context();
  const boost::container::small_vector<ir::SymInt, 8> shape(p.sizes.begin(), p.sizes.end());
  const ir::Type type =
      ctx.tensor_type(p.element, std::span<const ir::SymInt>(shape.data(), shape.size()));
  if (elements == 0)
    return graph.add_constant(type, nullptr, nullptr);
  if (p.storage.empty())
    return graph.add_constant(type, nullptr, nullptr, {}, false);
  const auto item = static_cast<u64>(ir::element_bytes(p.element));
  if (!fits || static_cast<u64>(last) >= p.storage.size() / item)
    return bad("pt2.weight.range", name, p,
               "reaches behind its storage of " + std::to_string(p.storage.size()) + " bytes",
               "weights of another device may be saved incompletely; move the module to the CPU "
               "before exporting");
  const std::byte *data = p.storage.data() + static_cast<u64>(p.offset) * item;
  std::shared_ptr<const void> owner = p.owner;
  // The natural alignment of complex numbers is their part's.
  const u64 alignment = ir::is_complex(p.element) ? item / 2 : item;
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    // Archives from torch do not come here: their members are aligned to 64 bytes.
    const u64 bytes = (static_cast<u64>(last - p.offset) + 1) * item;
    std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
    std::memcpy(copy.get(), data, bytes);
    data = copy.get();
    owner = std::move(copy);
  }
  return graph.add_constant(type, data, std::move(owner), p.strides);
}

} // namespace chute::pt2

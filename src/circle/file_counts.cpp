#include "circle/file_counts.h"

#include "circle/file_view.h"

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstring>
#include <string_view>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

struct BytesHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }
};
using Seen = boost::unordered_flat_set<std::string_view, BytesHash>;

} // namespace

Result<FileCounts> count_file(std::span<const std::byte> bytes) {
  const auto owner = aligned_copy(bytes);
  auto view = open_view(bytes);
  if (!view)
    return tl::unexpected(std::move(view.error()));
  Diagnostics problems;
  StructureOptions options;
  options.only_fatal = true;
  options.max_findings = 1;
  check_structure(*view, options, problems);
  if (!problems.all().empty())
    return tl::unexpected<Diagnostic>(problems.all().front());

  const auto &model = *view->model;
  FileCounts out;
  out.bytes = bytes.size();
  out.subgraphs = size_of(model.subgraphs());
  for (u32 s = 0; s < out.subgraphs; ++s) {
    const auto &sub = *model.subgraphs()->Get(s);
    out.operators += size_of(sub.operators());
    out.tensors += size_of(sub.tensors());
    Seen names;
    names.reserve(size_of(sub.tensors()));
    for (u32 t = 0; t < size_of(sub.tensors()); ++t) {
      const auto &tensor = *sub.tensors()->Get(t);
      out.constants += is_constant(*view, tensor);
      const auto *name = tensor.name();
      out.repeated_names += !name || name->size() == 0 ||
                            !names.insert(std::string_view(name->c_str(), name->size())).second;
    }
  }
  Seen contents;
  for (u32 b = 0; b < size_of(model.buffers()); ++b) {
    const auto data = payload(*view, b);
    if (data.empty())
      continue;
    ++out.buffers;
    out.buffer_bytes += data.size();
    out.repeated_buffers +=
        !contents.insert({reinterpret_cast<const char *>(data.data()), data.size()}).second;
  }
  out.operator_codes = size_of(model.operator_codes());
  out.metadata = size_of(model.metadata());
  out.signatures = size_of(model.signature_defs());
  return out;
}

} // namespace chute::circle

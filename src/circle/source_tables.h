#pragma once

#include "ir/type.h"
#include "schema/circle_generated.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>

/// Tables that the IR does not hold, from a source file into a new one. What several tables shared
/// is shared again. Internal to the writer.
namespace chute::circle {

class SourceTables {
public:
  explicit SourceTables(flatbuffers::FlatBufferBuilder &fbb) : fbb_(fbb) {}

  /// Whether the parameters say more than, or something else than, `quant`, which is how a reader
  /// understands them.
  static bool says_more(const ::circle::QuantizationParameters *q, const ir::Quantization *quant);

  /// `tensor` translates the indices that block-wise parameters hold; they are not shared.
  flatbuffers::Offset<::circle::QuantizationParameters>
  quantization(const ::circle::QuantizationParameters &q, const std::function<i32(i32)> &tensor);

  flatbuffers::Offset<::circle::SparsityParameters>
  sparsity(const ::circle::SparsityParameters &in);

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<::circle::VariantSubType>>>
  variants(const flatbuffers::Vector<flatbuffers::Offset<::circle::VariantSubType>> &in);

  template <class T>
  flatbuffers::Offset<flatbuffers::Vector<T>> vector(const flatbuffers::Vector<T> *in) {
    if (!in)
      return 0;
    const auto [it, fresh] = vectors_.try_emplace(in, 0);
    if (fresh)
      it->second = fbb_.CreateVector(in->data(), in->size()).o;
    return it->second;
  }

private:
  std::pair<u8, flatbuffers::Offset<void>> indices(u8 type, const void *table);

  flatbuffers::FlatBufferBuilder &fbb_;
  boost::unordered_flat_map<const void *, flatbuffers::uoffset_t> vectors_;
  boost::unordered_flat_map<const void *, flatbuffers::uoffset_t> tables_;
};

} // namespace chute::circle

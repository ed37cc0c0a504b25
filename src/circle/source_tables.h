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

  /// Lists of ranges that are there without content, as some writers have them everywhere: 1 for
  /// minima, 2 for maxima. says_more() does not count them.
  static u8 empty_lists(const ::circle::QuantizationParameters &q) {
    return static_cast<u8>((q.min() && q.min()->size() == 0 ? 1 : 0) |
                           (q.max() && q.max()->size() == 0 ? 2 : 0));
  }

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
    if (in->size() == 0) // some writers give every table its own
      return no_elements();
    const auto [it, fresh] = vectors_.try_emplace(in, 0);
    if (fresh)
      it->second = fbb_.CreateVector(in->data(), in->size()).o;
    return it->second;
  }

  flatbuffers::Offset<flatbuffers::Vector<float>> no_floats() { return no_elements(); }

private:
  /// One list without elements stands for all, of up to 4 bytes each.
  flatbuffers::uoffset_t no_elements() {
    if (!empty_)
      empty_ = fbb_.CreateVector(static_cast<const float *>(nullptr), 0).o;
    return empty_;
  }
  std::pair<u8, flatbuffers::Offset<void>> indices(u8 type, const void *table);

  flatbuffers::FlatBufferBuilder &fbb_;
  boost::unordered_flat_map<const void *, flatbuffers::uoffset_t> vectors_;
  boost::unordered_flat_map<const void *, flatbuffers::uoffset_t> tables_;
  flatbuffers::uoffset_t empty_ = 0;
};

} // namespace chute::circle

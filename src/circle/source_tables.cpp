#include "circle/source_tables.h"

#include <cstring>
#include <vector>

namespace chute::circle {

namespace cs = ::circle;
namespace fb = flatbuffers;

namespace {

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

/// The verifier of flatbuffers asks vectors for the alignment of their length only.
std::vector<i64> longs(const fb::Vector<i64> *in) {
  std::vector<i64> out(size_of(in));
  if (!out.empty())
    std::memcpy(out.data(), in->Data(), out.size() * sizeof(i64));
  return out;
}

} // namespace

bool SourceTables::says_more(const cs::QuantizationParameters *q, const ir::Quantization *quant) {
  if (!q)
    return quant != nullptr;
  if (!quant || quant->kind == ir::QuantKind::MX)
    return true;
  return size_of(q->min()) || size_of(q->max()) ||
         q->details_type() != cs::QuantizationDetails_NONE ||
         size_of(q->zero_point()) != size_of(q->scale()) ||
         (size_of(q->scale()) == 1 && q->quantized_dimension() != 0);
}

fb::Offset<cs::QuantizationParameters>
SourceTables::quantization(const cs::QuantizationParameters &q,
                           const std::function<i32(i32)> &tensor) {
  const auto *block = q.details_as_BlockwiseQuantization();
  if (!block)
    if (const auto it = tables_.find(&q); it != tables_.end())
      return it->second;
  const auto scale = vector(q.scale());
  fb::Offset<fb::Vector<i64>> zero_point;
  if (q.zero_point())
    zero_point = fbb_.CreateVector(longs(q.zero_point()));
  const auto min = vector(q.min()), max = vector(q.max());
  fb::Offset<void> details;
  if (block)
    details = cs::CreateBlockwiseQuantization(fbb_, tensor(block->scales()),
                                              tensor(block->zero_points()), block->block_size())
                  .Union();
  else if (const auto *mx = q.details_as_MXQuantization())
    details = cs::CreateMXQuantization(fbb_, mx->axis()).Union();
  else if (const auto *custom = q.details_as_CustomQuantization())
    details = cs::CreateCustomQuantization(fbb_, vector(custom->custom())).Union();
  cs::QuantizationParametersBuilder b(fbb_);
  if (!scale.IsNull())
    b.add_scale(scale);
  if (!zero_point.IsNull())
    b.add_zero_point(zero_point);
  if (!min.IsNull())
    b.add_min(min);
  if (!max.IsNull())
    b.add_max(max);
  b.add_quantized_dimension(q.quantized_dimension());
  if (!details.IsNull()) {
    b.add_details(details);
    b.add_details_type(q.details_type());
  }
  const auto out = b.Finish();
  if (!block)
    tables_.emplace(&q, out.o);
  return out;
}

/// One of the three widths of index vectors.
std::pair<u8, fb::Offset<void>> SourceTables::indices(u8 type, const void *table) {
  if (!table)
    return {0, 0};
  switch (type) {
  case cs::SparseIndexVector_Int32Vector: {
    const auto *v = static_cast<const cs::Int32Vector *>(table)->values();
    return {type, cs::CreateInt32Vector(fbb_, vector(v)).Union()};
  }
  case cs::SparseIndexVector_Uint16Vector: {
    const auto *v = static_cast<const cs::Uint16Vector *>(table)->values();
    return {type, cs::CreateUint16Vector(fbb_, vector(v)).Union()};
  }
  case cs::SparseIndexVector_Uint8Vector: {
    const auto *v = static_cast<const cs::Uint8Vector *>(table)->values();
    return {type, cs::CreateUint8Vector(fbb_, vector(v)).Union()};
  }
  default: return {0, 0};
  }
}

fb::Offset<cs::SparsityParameters> SourceTables::sparsity(const cs::SparsityParameters &in) {
  if (const auto it = tables_.find(&in); it != tables_.end())
    return it->second;
  fb::Offset<fb::Vector<fb::Offset<cs::DimensionMetadata>>> dims;
  if (in.dim_metadata()) {
    std::vector<fb::Offset<cs::DimensionMetadata>> list;
    for (const cs::DimensionMetadata *d : *in.dim_metadata()) {
      const auto segments = indices(static_cast<u8>(d->array_segments_type()), d->array_segments());
      const auto entries = indices(static_cast<u8>(d->array_indices_type()), d->array_indices());
      cs::DimensionMetadataBuilder b(fbb_);
      b.add_format(d->format());
      b.add_dense_size(d->dense_size());
      if (segments.first) {
        b.add_array_segments_type(static_cast<cs::SparseIndexVector>(segments.first));
        b.add_array_segments(segments.second);
      }
      if (entries.first) {
        b.add_array_indices_type(static_cast<cs::SparseIndexVector>(entries.first));
        b.add_array_indices(entries.second);
      }
      list.push_back(b.Finish());
    }
    dims = fbb_.CreateVector(list);
  }
  const auto order = vector(in.traversal_order()), blocks = vector(in.block_map());
  cs::SparsityParametersBuilder b(fbb_);
  if (!order.IsNull())
    b.add_traversal_order(order);
  if (!blocks.IsNull())
    b.add_block_map(blocks);
  if (!dims.IsNull())
    b.add_dim_metadata(dims);
  const auto out = b.Finish();
  tables_.emplace(&in, out.o);
  return out;
}

fb::Offset<fb::Vector<fb::Offset<cs::VariantSubType>>>
SourceTables::variants(const fb::Vector<fb::Offset<cs::VariantSubType>> &in) {
  std::vector<fb::Offset<cs::VariantSubType>> list;
  for (const cs::VariantSubType *v : in)
    list.push_back(cs::CreateVariantSubType(fbb_, vector(v->shape()), v->type(), v->has_rank()));
  return fbb_.CreateVector(list);
}

} // namespace chute::circle

#include "circle/op_signature.h"

#include "circle/element.h"

#include <algorithm>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

namespace cs = ::circle;

/// Inference looks at the values of constants up to this size (infer_support.h).
constexpr u64 kSmallElements = 64;

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

u64 elements_of(const cs::Tensor &t) {
  u64 n = 1;
  for (u32 i = 0; i < size_of(t.shape()); ++i)
    n = std::min<u64>(n * static_cast<u64>(t.shape()->Get(i)), u64{1} << 40);
  return n;
}

template <class T>
void hash_vector(XXH3_state_t &state, const flatbuffers::Vector<T> *v) {
  const u32 n = size_of(v);
  XXH3_64bits_update(&state, &n, sizeof(n));
  if (n)
    XXH3_64bits_update(&state, v->Data(), n * sizeof(T));
}

/// What the table of a field holds, as words; lists by their hash.
u64 field_word(const flatbuffers::Table &table, const Field &f) {
  const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * f.slot);
  const auto list = [&](size_t width) {
    const auto *v = table.GetPointer<const flatbuffers::Vector<u8> *>(slot);
    return v ? XXH3_64bits(v->Data(), v->size() * width) + v->size() : 0;
  };
  switch (f.type) {
  case FieldType::Int:
  case FieldType::UInt:
  case FieldType::Float:
  case FieldType::Subgraph: return table.GetField<u32>(slot, 0x5A5A5A5A);
  case FieldType::Long: return table.GetField<u64>(slot, 0x5A5A5A5A);
  case FieldType::Bool:
  case FieldType::TensorType: return table.GetField<u8>(slot, 0xA5);
  case FieldType::Enum:
    return f.enumeration->bytes == 1 ? table.GetField<u8>(slot, 0xA5)
                                     : table.GetField<u32>(slot, 0x5A5A5A5A);
  case FieldType::Longs: return list(8);
  case FieldType::Ints:
  case FieldType::UInts:
  case FieldType::Floats:
  case FieldType::Subgraphs: return list(4);
  case FieldType::String:
  case FieldType::Bytes:
  case FieldType::Bools: return list(1);
  }
  return 0;
}

/// Whether shapes may follow from an operator's constants, as from axes, sizes, permutations.
bool reads_values(ir::OpCode code) {
  if (code == op::FULLY_CONNECTED || code == op::CONV_2D || code == op::DEPTHWISE_CONV_2D ||
      code == op::BATCH_MATMUL)
    return false;
  return !ir::Registry::global().def(code).has(ir::trait::kElementwise);
}

} // namespace

bool OpSignatures::enter(u32 subgraph) {
  sub_ = file_.model->subgraphs()->Get(subgraph);
  const u32 count = size_of(sub_->tensors());
  for (u32 t = 0; t < count; ++t)
    if (const auto *signature = sub_->tensors()->Get(t)->shape_signature())
      if (std::find(signature->begin(), signature->end(), -1) != signature->end())
        return false;
  std::vector<bool> computed(count, false);
  for (u32 o = 0; o < size_of(sub_->operators()); ++o) {
    const cs::Operator &op = *sub_->operators()->Get(o);
    for (u32 i = 0; i < size_of(op.inputs()); ++i)
      if (const i32 t = op.inputs()->Get(i); t >= 0 && computed[static_cast<size_t>(t)])
        return false;
    for (u32 i = 0; i < size_of(op.outputs()); ++i) {
      const auto t = static_cast<u32>(op.outputs()->Get(i));
      const cs::Tensor &out = *sub_->tensors()->Get(t);
      computed[t] = (out.type() == cs::TensorType_INT32 || out.type() == cs::TensorType_INT64) &&
                    elements_of(out) <= kSmallElements;
    }
  }
  keys_.assign(2 * static_cast<size_t>(count), 0);
  return true;
}

u64 OpSignatures::tensor_key(i32 tensor, bool by_value) {
  if (tensor < 0)
    return 1;
  u64 &known = keys_[2 * static_cast<size_t>(tensor) + by_value];
  if (known)
    return known;
  const cs::Tensor &t = *sub_->tensors()->Get(static_cast<u32>(tensor));
  const auto data = t.buffer() == 0 ? std::span<const std::byte>() : payload(file_, t.buffer());
  const bool small = by_value && !data.empty() && data.size() <= kSmallElements * 16 &&
                     elements_of(t) <= kSmallElements;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const u32 head = static_cast<u8>(t.type()) | (t.is_variable() ? 0x100u : 0) |
                   (data.empty() ? 0 : 0x200u) | (t.sparsity() ? 0x400u : 0);
  XXH3_64bits_update(&state, &head, sizeof(head));
  hash_vector(state, t.shape());
  if (const cs::QuantizationParameters *q = t.quantization()) {
    // Movement hands on one scale; of channels it matters where they are, not what they hold.
    const i32 rest[3] = {q->quantized_dimension(), static_cast<i32>(q->details_type()),
                         static_cast<i32>(size_of(q->scale()))};
    if (by_value && rest[2] == 1) {
      hash_vector(state, q->scale());
      hash_vector(state, q->zero_point());
    }
    XXH3_64bits_update(&state, rest, sizeof(rest));
    if (const auto *mx = q->details_as_MXQuantization()) {
      const i32 axis = mx->axis();
      XXH3_64bits_update(&state, &axis, sizeof(axis));
    }
  }
  if (small)
    XXH3_64bits_update(&state, data.data(), data.size());
  return known = XXH3_64bits_digest(&state) | 2;
}

OpSignatures::Key OpSignatures::key(const cs::Operator &op) {
  const cs::OperatorCode &code = *file_.model->operator_codes()->Get(op.opcode_index());
  const ir::OpCode opcode = *from_wire(effective_code(code));
  const bool by_value = reads_values(opcode);
  words_.clear();
  words_.push_back(op.opcode_index());
  words_.push_back(size_of(op.inputs()));
  for (u32 i = 0; i < size_of(op.inputs()); ++i)
    words_.push_back(tensor_key(op.inputs()->Get(i), by_value));
  for (u32 i = 0; i < size_of(op.outputs()); ++i)
    words_.push_back(tensor_key(op.outputs()->Get(i), by_value));
  const WireDef &w = wire(opcode);
  const flatbuffers::Table *table = w.options ? options_table(op, *w.options) : nullptr;
  words_.push_back(table != nullptr);
  if (table)
    for (const Field &f : w.options->fields)
      words_.push_back(field_word(*table, f));
  for (u32 i = 0; i < size_of(op.intermediates()); ++i)
    words_.push_back(tensor_key(op.intermediates()->Get(i), false));
  if (const auto *flags = op.mutating_variable_inputs())
    words_.push_back(XXH3_64bits(flags->Data(), flags->size()));
  const XXH128_hash_t h = XXH3_128bits(words_.data(), words_.size() * sizeof(u64));
  return {h.low64, h.high64};
}

} // namespace chute::circle

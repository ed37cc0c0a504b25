#include "circle/writer.h"

#include "circle/element.h"
#include "circle/options_codec.h"
#include "circle/write_plan.h"
#include "ir/context.h"
#include "support/check.h"
#include "support/output_file.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

namespace fb = flatbuffers;
namespace cs = ::circle;
using ir::Op;
using ir::Type;

constexpr u64 kAlignment = 16;
/// The flatbuffer itself stays below this, far enough from 2 GiB for one more table of any kind.
constexpr u64 kHeaderLimit = (u64{1} << 31) - (u64{1} << 27);
constexpr size_t kLongestName = size_t{1} << 24;
/// A payload of one byte has no room in the external form, whose size 1 means "inline".
constexpr u64 kSmallestExternal = 2;

u64 align_up(u64 n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

struct BytesHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }
};

/// The flatbuffer with holes where it refers to payloads.
struct Header {
  fb::FlatBufferBuilder fbb;
  /// Per payload, in order: its distance of the reference from the flatbuffer's end, and the
  /// constant.
  struct Hole {
    fb::uoffset_t from_end;
    const PlannedBuffer *buffer;
  };
  std::vector<Hole> holes;
  bool external = false;
};

/// Builds the flatbuffer. Children that many tables have in common (shapes, quantization
/// parameters, equal options) exist once.
class HeaderBuilder {
public:
  HeaderBuilder(const ir::Graph &graph, const Plan &plan, const WriteOptions &options, Header &out)
      : graph_(graph), plan_(plan), options_(options), out_(out), fbb_(out.fbb) {}

  Status build() {
    std::vector<fb::Offset<cs::SubGraph>> subgraphs;
    for (size_t i = 0; i < plan_.subgraphs.size(); ++i) {
      auto g = subgraph(i);
      if (!g)
        return tl::unexpected(g.error());
      subgraphs.push_back(*g);
    }
    const auto subgraph_vector = fbb_.CreateVector(subgraphs);
    const auto code_vector = codes();
    const auto signature_vector = signatures();
    const auto description = fbb_.CreateString(options_.description);
    fb::Offset<fb::Vector<fb::Offset<cs::Metadata>>> metadata;
    if (!options_.metadata.empty())
      metadata = metadata_vector();
    if (Status s = check_size(); !s)
      return s;
    const auto buffer_vector = buffers();
    cs::ModelBuilder model(fbb_);
    model.add_version(0);
    model.add_operator_codes(code_vector);
    model.add_subgraphs(subgraph_vector);
    model.add_description(description);
    model.add_buffers(buffer_vector);
    if (!metadata.IsNull())
      model.add_metadata(metadata);
    if (!signature_vector.IsNull())
      model.add_signature_defs(signature_vector);
    fbb_.Finish(model.Finish(), cs::ModelIdentifier());
    return fbb_.GetSize() < kHeaderLimit + (u64{1} << 26) ? Status{} : too_large();
  }

private:
  static Status too_large() {
    return fail(ErrorKind::Unsupported, "circle.write.too_large",
                "operators and tensors alone take more than the 2 GiB of a flatbuffer", "model",
                "split the program");
  }
  Status check_size() const { return fbb_.GetSize() < kHeaderLimit ? Status{} : too_large(); }

  // --- tensors ---------------------------------------------------------------------------------

  struct Shape {
    fb::Offset<fb::Vector<i32>> shape;
    fb::Offset<fb::Vector<i32>> signature; // null for a static shape
  };

  const Shape &shape_of(Type t) {
    if (t.id() >= shapes_.size())
      shapes_.resize(std::max<size_t>(t.id() + 1, shapes_.size() * 2));
    Shape &s = shapes_[t.id()];
    if (!s.shape.IsNull())
      return s;
    std::vector<i32> dims, signature;
    for (ir::SymInt d : t.shape()) {
      dims.push_back(d.is_symbolic() ? 1 : static_cast<i32>(d.value()));
      signature.push_back(d.is_symbolic() ? -1 : static_cast<i32>(d.value()));
    }
    // Types that differ in element type or quantization alone share the vector as well.
    std::string key(reinterpret_cast<const char *>(signature.data()), signature.size() * 4);
    const auto [it, fresh] = shape_vectors_.try_emplace(std::move(key));
    if (fresh) {
      it->second.shape = fbb_.CreateVector(dims);
      if (!t.has_static_shape())
        it->second.signature = fbb_.CreateVector(signature);
    }
    s = it->second;
    return s;
  }

  Result<fb::Offset<cs::QuantizationParameters>> quantization(const ir::Quantization &q) {
    const auto [it, fresh] = quants_.try_emplace(&q);
    if (!fresh)
      return it->second;
    if (q.kind == ir::QuantKind::Block)
      return fail(ErrorKind::Unsupported, "circle.write.quantization",
                  "block quantization has its scales in a tensor of its own, which is not written",
                  "quantization", "dequantize the tensor first");
    if (q.kind == ir::QuantKind::MX) {
      const auto details = cs::CreateMXQuantization(fbb_, q.axis);
      cs::QuantizationParametersBuilder b(fbb_);
      b.add_quantized_dimension(q.axis);
      b.add_details(details.Union());
      b.add_details_type(cs::QuantizationDetails_MXQuantization);
      return it->second = b.Finish();
    }
    const auto scale = fbb_.CreateVector(q.scales.data(), q.scales.size());
    std::vector<i64> zero_points(q.zero_points.begin(), q.zero_points.end());
    zero_points.resize(q.scales.size(), 0);
    const auto zero_point = fbb_.CreateVector(zero_points);
    cs::QuantizationParametersBuilder b(fbb_);
    b.add_scale(scale);
    b.add_zero_point(zero_point);
    if (q.kind == ir::QuantKind::PerChannel)
      b.add_quantized_dimension(q.axis);
    return it->second = b.Finish();
  }

  Result<fb::Offset<cs::Tensor>> tensor(const PlannedTensor &t) {
    if (t.name.size() > kLongestName)
      return fail(ErrorKind::Unsupported, "circle.write.too_large", "a tensor's name is too long",
                  "model");
    const Shape shape = shape_of(t.type);
    fb::Offset<cs::QuantizationParameters> quant;
    if (t.type.quant()) {
      auto q = quantization(*t.type.quant());
      if (!q) {
        q.error().object = "tensor '" + std::string(t.name) + "'";
        return tl::unexpected(q.error());
      }
      quant = *q;
    }
    const auto name = fbb_.CreateString(t.name.data(), t.name.size());
    cs::TensorBuilder b(fbb_);
    b.add_shape(shape.shape);
    if (!shape.signature.IsNull())
      b.add_shape_signature(shape.signature);
    b.add_buffer(t.buffer);
    b.add_name(name);
    if (!quant.IsNull())
      b.add_quantization(quant);
    b.add_type(static_cast<cs::TensorType>(*to_wire_type(t.type.element())));
    b.add_is_variable(t.variable);
    return b.Finish();
  }

  // --- operators -------------------------------------------------------------------------------

  Result<fb::Offset<void>> options_of(const Op &op, const OptionsDef &def,
                                      std::span<const i32> subgraphs) {
    if (!subgraphs.empty())
      return encode_options(fbb_, def, op, subgraphs);
    key_.clear();
    key_ += static_cast<char>(def.union_number);
    key_ += static_cast<char>(def.member);
    for (const Field &f : def.fields) {
      const ir::Attr a = op.attr(static_cast<u32>(f.attr));
      const u64 payload = a.payload();
      key_ += static_cast<char>(a.kind());
      key_.append(reinterpret_cast<const char *>(&payload), sizeof(payload));
    }
    if (const auto it = options_cache_.find(key_); it != options_cache_.end())
      return it->second;
    auto offset = encode_options(fbb_, def, op, subgraphs);
    if (offset)
      options_cache_.emplace(key_, *offset);
    return offset;
  }

  Result<fb::Offset<cs::Operator>> op(const PlannedSubgraph &g, const Op &op, size_t &index,
                                      size_t &region) {
    const WireDef &w = wire(op.opcode());
    std::vector<i32> subgraphs;
    if (op.num_regions())
      for (u32 i = 0, start = g.region_starts[region++]; i < op.num_regions(); ++i)
        subgraphs.push_back(static_cast<i32>(start + i));
    fb::Offset<void> options;
    if (w.options) {
      auto o = options_of(op, *w.options, subgraphs);
      if (!o) {
        o.error().kind = ErrorKind::Unsupported;
        o.error().object = std::string(op.name()) + ", " + o.error().object;
        return tl::unexpected(o.error());
      }
      options = *o;
    }
    const u32 inputs = written_operands(op, w), outputs = op.num_results();
    const auto input_vector = fbb_.CreateVector(g.indices.data() + index, inputs);
    const auto output_vector = fbb_.CreateVector(g.indices.data() + index + inputs, outputs);
    index += inputs + outputs;
    fb::Offset<fb::Vector<u8>> custom, mutating;
    fb::Offset<fb::Vector<i32>> intermediates;
    if (op.opcode() == op::CUSTOM) {
      const std::string_view bytes = op.attr("custom_options").as_string();
      if (bytes.size() > kLongestName)
        return too_large_option(op);
      if (!bytes.empty())
        custom = fbb_.CreateVector(reinterpret_cast<const u8 *>(bytes.data()), bytes.size());
    }
    if (w.stateful) {
      if (const ir::Attr a = op.attr("mutating_variable_inputs"); !a.is_none()) {
        const std::vector<u8> flags(a.as_bools().begin(), a.as_bools().end());
        mutating = fbb_.CreateVector(flags);
      }
      if (const ir::Attr a = op.attr("intermediates"); !a.is_none()) {
        const size_t n = a.as_list().size();
        intermediates = fbb_.CreateVector(g.indices.data() + index, n);
        index += n;
      }
    }
    cs::OperatorBuilder b(fbb_);
    b.add_opcode_index(plan_.op_code[op.id()]);
    b.add_inputs(input_vector);
    b.add_outputs(output_vector);
    if (!options.IsNull() && w.options->union_number == 1) {
      b.add_builtin_options(options);
      b.add_builtin_options_type(static_cast<cs::BuiltinOptions>(w.options->member));
    } else if (!options.IsNull()) {
      b.add_builtin_options2(options);
      b.add_builtin_options2_type(static_cast<cs::BuiltinOptions2>(w.options->member));
    }
    if (!custom.IsNull())
      b.add_custom_options(custom);
    if (!mutating.IsNull())
      b.add_mutating_variable_inputs(mutating);
    if (!intermediates.IsNull())
      b.add_intermediates(intermediates);
    return b.Finish();
  }

  static tl::unexpected<Diagnostic> too_large_option(const Op &op) {
    return fail(ErrorKind::Unsupported, "circle.write.too_large",
                "the options of a custom operator take more than 16 MiB", std::string(op.name()));
  }

  Result<fb::Offset<cs::SubGraph>> subgraph(size_t number) {
    const PlannedSubgraph &g = plan_.subgraphs[number];
    std::vector<fb::Offset<cs::Tensor>> tensors;
    tensors.reserve(g.tensors.size());
    for (const PlannedTensor &t : g.tensors) {
      auto offset = tensor(t);
      if (!offset)
        return tl::unexpected(offset.error());
      tensors.push_back(*offset);
      if (Status s = check_size(); !s)
        return tl::unexpected(s.error());
    }
    std::vector<fb::Offset<cs::Operator>> ops;
    ops.reserve(g.ops.size());
    size_t index = 0, region = 0;
    for (const Op *o : g.ops) {
      auto offset = op(g, *o, index, region);
      if (!offset)
        return tl::unexpected(offset.error());
      ops.push_back(*offset);
      if (Status s = check_size(); !s)
        return tl::unexpected(s.error());
    }
    const auto tensor_vector = fbb_.CreateVector(tensors);
    const auto op_vector = fbb_.CreateVector(ops);
    const auto inputs = fbb_.CreateVector(g.inputs);
    const auto outputs = fbb_.CreateVector(g.outputs);
    std::string base = options_.subgraph_name.empty() ? graph_.name() : options_.subgraph_name;
    const auto name = fbb_.CreateString(number == 0 ? base : base + "_" + std::to_string(number));
    return cs::CreateSubGraph(fbb_, tensor_vector, inputs, outputs, op_vector, name);
  }

  // --- the rest --------------------------------------------------------------------------------

  fb::Offset<fb::Vector<fb::Offset<cs::OperatorCode>>> codes() {
    std::vector<fb::Offset<cs::OperatorCode>> out;
    for (const PlannedCode &c : plan_.codes) {
      fb::Offset<fb::String> custom;
      if (!c.custom_code.empty())
        custom = fbb_.CreateString(c.custom_code.data(), c.custom_code.size());
      out.push_back(cs::CreateOperatorCode(fbb_, static_cast<i8>(std::min(127, c.code)), custom,
                                           c.version, static_cast<cs::BuiltinOperator>(c.code)));
    }
    return fbb_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<cs::SignatureDef>>> signatures() {
    if (options_.signature_key.empty() || (graph_.inputs().empty() && graph_.outputs().empty()))
      return 0;
    const PlannedSubgraph &g = plan_.subgraphs[0];
    const auto map = [&](const std::string &name, i32 tensor) {
      return cs::CreateTensorMap(fbb_, fbb_.CreateString(name), static_cast<u32>(tensor));
    };
    std::vector<fb::Offset<cs::TensorMap>> inputs, outputs;
    size_t next = 0;
    for (const ir::InputInfo &i : graph_.inputs())
      if (i.value)
        inputs.push_back(map(i.name, g.inputs[next++]));
    next = 0;
    for (const ir::OutputInfo &o : graph_.outputs())
      if (o.operand >= 0)
        outputs.push_back(map(o.name, g.outputs[next++]));
    const auto input_vector = fbb_.CreateVector(inputs);
    const auto output_vector = fbb_.CreateVector(outputs);
    const auto key = fbb_.CreateString(options_.signature_key);
    const auto signature = cs::CreateSignatureDef(fbb_, input_vector, output_vector, key, 0);
    return fbb_.CreateVector(&signature, 1);
  }

  /// Metadata blobs are ordinary buffers behind those of the constants, always inline.
  fb::Offset<fb::Vector<fb::Offset<cs::Metadata>>> metadata_vector() {
    std::vector<fb::Offset<cs::Metadata>> out;
    auto buffer = static_cast<u32>(plan_.buffers.size() + 1);
    for (const auto &[name, content] : options_.metadata) {
      metadata_buffers_.push_back(cs::CreateBuffer(
          fbb_, fbb_.CreateVector(reinterpret_cast<const u8 *>(content.data()), content.size())));
      out.push_back(cs::CreateMetadata(fbb_, fbb_.CreateString(name), buffer++));
    }
    return fbb_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<cs::Buffer>>> buffers() {
    // 48 bytes bound a buffer's table with its place in the vector; payloads are aligned.
    u64 total = fbb_.GetSize() + 48 * (plan_.buffers.size() + 64);
    for (const PlannedBuffer &b : plan_.buffers)
      total += align_up(b.bytes + 4);
    out_.external = total > options_.inline_limit;
    std::vector<fb::Offset<cs::Buffer>> out;
    out.reserve(plan_.buffers.size() + 1);
    out.push_back(cs::CreateBuffer(fbb_)); // buffer 0 is "no data"
    for (const PlannedBuffer &b : plan_.buffers) {
      if (b.bytes == 0) {
        out.push_back(cs::CreateBuffer(fbb_));
        continue;
      }
      const bool external = out_.external && b.bytes >= kSmallestExternal;
      const fb::uoffset_t start = fbb_.StartTable();
      if (external) {
        fbb_.AddElement<u64>(cs::Buffer::VT_SIZE, b.bytes, 0);
        fbb_.AddElement<u64>(cs::Buffer::VT_OFFSET, kAlignment, 0);
      } else {
        // A raw number in the place of an offset: what it points to is not in the builder.
        fbb_.AddElement<fb::uoffset_t>(cs::Buffer::VT_DATA, 1, 0);
      }
      out_.holes.push_back({fbb_.GetSize(), &b});
      out.push_back(fb::Offset<cs::Buffer>(fbb_.EndTable(start)));
    }
    out.insert(out.end(), metadata_buffers_.begin(), metadata_buffers_.end());
    return fbb_.CreateVector(out);
  }

  const ir::Graph &graph_;
  const Plan &plan_;
  const WriteOptions &options_;
  Header &out_;
  fb::FlatBufferBuilder &fbb_;
  std::vector<Shape> shapes_; // by Type::id
  boost::unordered_flat_map<std::string, Shape> shape_vectors_;
  boost::unordered_flat_map<const ir::Quantization *, fb::Offset<cs::QuantizationParameters>>
      quants_;
  boost::unordered_flat_map<std::string, fb::Offset<void>, BytesHash> options_cache_;
  std::string key_;
  std::vector<fb::Offset<cs::Buffer>> metadata_buffers_;
};

/// Fills the holes, and where each payload goes: byte position of its data, length prefix excluded.
Result<std::vector<u64>> place_payloads(Header &header) {
  std::byte *base = reinterpret_cast<std::byte *>(header.fbb.GetBufferPointer());
  const u64 size = header.fbb.GetSize();
  u64 end = size;
  std::vector<u64> places;
  places.reserve(header.holes.size());
  for (const Header::Hole &h : header.holes) {
    const u64 hole = size - h.from_end;
    const bool external = header.external && h.buffer->bytes >= kSmallestExternal;
    // An inline vector has its length just before the aligned data.
    const u64 data = external ? align_up(end) : align_up(end + 4);
    if (external) {
      std::memcpy(base + hole, &data, sizeof(data));
    } else {
      if (data + h.buffer->bytes > (u64{1} << 31) - 1)
        return fail(ErrorKind::Unsupported, "circle.write.too_large",
                    "the flatbuffer exceeds 2 GiB", "model", "lower inline_limit");
      const auto relative = static_cast<fb::uoffset_t>(data - 4 - hole);
      std::memcpy(base + hole, &relative, sizeof(relative));
    }
    places.push_back(data);
    end = data + h.buffer->bytes;
  }
  return places;
}

/// The stored bytes of a constant that can not go out as it lies.
std::vector<std::byte> stored_bytes(const ir::Constant &c, u64 bytes, WriteStats &stats) {
  std::vector<std::byte> dense(c.dense_bytes());
  c.copy_dense(dense.data());
  stats.work.bytes_copied += dense.size();
  if (ir::element_bits(c.type.element()) != 4)
    return dense;
  std::vector<std::byte> packed(bytes);
  for (size_t i = 0; i < dense.size(); ++i) // low nibble first
    packed[i / 2] |= (dense[i] & std::byte{0xF}) << (i % 2 ? 4 : 0);
  return packed;
}

/// `Sink` has write(span) and write_zeros(count), which return a Status.
template <class Sink>
Status emit(Header &header, const std::vector<u64> &places, Sink &sink, WriteStats &stats) {
  const std::span<const std::byte> head(
      reinterpret_cast<const std::byte *>(header.fbb.GetBufferPointer()), header.fbb.GetSize());
  if (Status s = sink.write(head); !s)
    return s;
  u64 position = head.size();
  for (size_t i = 0; i < places.size(); ++i) {
    const PlannedBuffer &b = *header.holes[i].buffer;
    const bool external = header.external && b.bytes >= kSmallestExternal;
    const u64 start = external ? places[i] : places[i] - 4;
    if (Status s = sink.write_zeros(start - position); !s)
      return s;
    if (!external) {
      const auto length = static_cast<u32>(b.bytes);
      if (Status s = sink.write(std::as_bytes(std::span(&length, 1))); !s)
        return s;
    }
    Status s;
    if (b.constant->is_dense() && ir::element_bits(b.constant->type.element()) != 4)
      s = sink.write(b.constant->bytes());
    else
      s = sink.write(stored_bytes(*b.constant, b.bytes, stats));
    if (!s)
      return s;
    position = places[i] + b.bytes;
  }
  stats.bytes = position;
  return {};
}

Status build_header(const ir::Graph &graph, const WriteOptions &options, Plan &plan, Header &header,
                    WriteStats &stats) {
  auto made = make_plan(graph, stats);
  if (!made)
    return tl::unexpected(made.error());
  plan = std::move(*made);
  stats.subgraphs = plan.subgraphs.size();
  for (const PlannedSubgraph &g : plan.subgraphs) {
    stats.operators += g.ops.size();
    stats.tensors += g.tensors.size();
  }
  stats.buffers = plan.buffers.size() + 1 + options.metadata.size();
  stats.payload_bytes = plan.payload_bytes;
  Status s = HeaderBuilder(graph, plan, options, header).build();
  stats.external = header.external;
  return s;
}

struct MemorySink {
  std::vector<std::byte> bytes;
  Status write(std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }
  Status write_zeros(u64 count) {
    bytes.resize(bytes.size() + count);
    return {};
  }
};

} // namespace

Status write(const ir::Graph &graph, const std::string &path, const WriteOptions &options,
             WriteStats *stats) {
  WriteStats local;
  WriteStats &s = stats ? *stats : local;
  s = {};
  Plan plan;
  Header header;
  if (Status ok = build_header(graph, options, plan, header, s); !ok)
    return ok;
  auto places = place_payloads(header);
  if (!places)
    return tl::unexpected(places.error());
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  if (Status ok = emit(header, *places, *file, s); !ok)
    return ok;
  return file->commit(options.sync);
}

Result<std::vector<std::byte>> write_bytes(const ir::Graph &graph, const WriteOptions &options,
                                           WriteStats *stats) {
  WriteStats local;
  WriteStats &s = stats ? *stats : local;
  s = {};
  Plan plan;
  Header header;
  if (Status ok = build_header(graph, options, plan, header, s); !ok)
    return tl::unexpected(ok.error());
  auto places = place_payloads(header);
  if (!places)
    return tl::unexpected(places.error());
  MemorySink sink;
  if (Status ok = emit(header, *places, sink, s); !ok)
    return tl::unexpected(ok.error());
  return std::move(sink.bytes);
}

} // namespace chute::circle

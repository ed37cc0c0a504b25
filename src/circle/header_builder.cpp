#include "circle/header_builder.h"

#include "circle/element.h"
#include "circle/file_view.h"
#include "circle/options_codec.h"
#include "circle/source_tables.h"
#include "ir/context.h"
#include "support/check.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

namespace fb = flatbuffers;
namespace cs = ::circle;
using ir::Op;
using ir::Type;

/// The flatbuffer itself stays below this, far enough from 2 GiB for one more table of any kind.
constexpr u64 kHeaderLimit = (u64{1} << 31) - (u64{1} << 27);
constexpr size_t kLongestName = size_t{1} << 24;

struct BytesHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }
};

/// Builds the flatbuffer. Children that many tables have in common (shapes, quantization
/// parameters, equal options) exist once.
class HeaderBuilder {
public:
  HeaderBuilder(const HeaderRequest &request, const Plan &plan, Header &out)
      : request_(request),
        options_(request.options),
        plan_(plan),
        out_(out),
        fbb_(out.fbb),
        copy_(out.fbb) {
    if (const Origin *origin = request.what.origin)
      source_ = cs::GetModel(origin->bytes.data());
  }

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
    fb::Offset<fb::Vector<i32>> legacy_metadata;
    if (!plan_.legacy_metadata.empty())
      legacy_metadata = fbb_.CreateVector(
          std::vector<i32>(plan_.legacy_metadata.begin(), plan_.legacy_metadata.end()));
    if (Status s = check_size(); !s)
      return s;
    const auto buffer_vector = buffers();
    cs::ModelBuilder model(fbb_);
    model.add_version(request_.version);
    model.add_operator_codes(code_vector);
    model.add_subgraphs(subgraph_vector);
    model.add_description(description);
    model.add_buffers(buffer_vector);
    if (!metadata.IsNull())
      model.add_metadata(metadata);
    if (!legacy_metadata.IsNull())
      model.add_metadata_buffer(legacy_metadata);
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

  Result<fb::Offset<cs::QuantizationParameters>> quantization(const ir::Quantization &q,
                                                              u8 empty_lists) {
    const auto [it, fresh] = quants_.try_emplace({&q, empty_lists});
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
    // Symmetric channels have as many zeros as the next tensor's.
    const auto [zeros, fresh_zeros] = zero_points_.try_emplace(zero_points);
    if (fresh_zeros)
      zeros->second = fbb_.CreateVector(zero_points);
    const fb::Offset<fb::Vector<i64>> zero_point = zeros->second;
    const auto empty = empty_lists ? copy_.no_floats() : fb::Offset<fb::Vector<float>>();
    cs::QuantizationParametersBuilder b(fbb_);
    b.add_scale(scale);
    b.add_zero_point(zero_point);
    if (empty_lists & 1)
      b.add_min(empty);
    if (empty_lists & 2)
      b.add_max(empty);
    if (q.kind == ir::QuantKind::PerChannel)
      b.add_quantized_dimension(q.axis);
    return it->second = b.Finish();
  }

  /// The table that a tensor was, null for a new one.
  const cs::Tensor *source_of(const PlannedTensor &t) const {
    if (t.origin == kNoOrigin)
      return nullptr;
    const std::vector<u32> &first = request_.what.origin->first_tensor;
    const auto s = static_cast<u32>(std::upper_bound(first.begin(), first.end(), t.origin) -
                                    first.begin() - 1);
    return source_->subgraphs()->Get(s)->tensors()->Get(t.origin - first[s]);
  }

  /// Shape and signature as they were, unless the shape is another one now.
  bool keep_shape(const PlannedTensor &t, const cs::Tensor &in, Shape &out) {
    const u32 rank = in.shape() ? in.shape()->size() : 0;
    const u32 signed_dims = in.shape_signature() ? in.shape_signature()->size() : 0;
    if (t.type) {
      if (signed_dims == 0)
        return false; // what the type says is all that there is
      if (t.type.rank() != static_cast<int>(rank))
        return false;
      for (u32 i = 0; i < rank; ++i) {
        const ir::SymInt d = t.type.dim(static_cast<int>(i));
        const bool dynamic = in.shape_signature()->Get(i) == -1;
        if (d.is_symbolic() != dynamic || (!dynamic && d.value() != in.shape()->Get(i)))
          return false;
      }
    }
    out.shape = copy_.vector(in.shape());
    out.signature = signed_dims ? copy_.vector(in.shape_signature()) : 0;
    return true;
  }

  Result<fb::Offset<cs::Tensor>> tensor(const PlannedSubgraph &g, const PlannedTensor &t) {
    if (t.name.size() > kLongestName)
      return fail(ErrorKind::Unsupported, "circle.write.too_large", "a tensor's name is too long",
                  "model");
    const cs::Tensor *in = source_of(t);
    Shape shape;
    if (!in || !keep_shape(t, *in, shape))
      shape = t.type ? shape_of(t.type) : Shape();
    fb::Offset<cs::QuantizationParameters> quant;
    if (in && in->quantization() && keeps_quantization(t, *in)) {
      auto q = foreign_quantization(g, t, *in->quantization());
      if (!q)
        return tl::unexpected(q.error());
      quant = *q;
    } else if (t.type && t.type.quant()) {
      const u8 lists =
          in && in->quantization() ? SourceTables::empty_lists(*in->quantization()) : u8{0};
      auto q = quantization(*t.type.quant(), lists);
      if (!q) {
        q.error().object = "tensor '" + std::string(t.name) + "'";
        return tl::unexpected(q.error());
      }
      quant = *q;
    }
    const auto name = fbb_.CreateString(t.name.data(), t.name.size());
    fb::Offset<cs::SparsityParameters> sparsity;
    if (in && in->sparsity() && t.buffer)
      sparsity = copy_.sparsity(*in->sparsity());
    fb::Offset<fb::Vector<fb::Offset<cs::VariantSubType>>> variants;
    if (in && in->variant_tensors())
      variants = copy_.variants(*in->variant_tensors());
    cs::TensorBuilder b(fbb_);
    if (!shape.shape.IsNull())
      b.add_shape(shape.shape);
    if (!shape.signature.IsNull())
      b.add_shape_signature(shape.signature);
    b.add_buffer(t.buffer);
    b.add_name(name);
    if (!quant.IsNull())
      b.add_quantization(quant);
    b.add_type(t.type ? static_cast<cs::TensorType>(*to_wire_type(t.type.element())) : in->type());
    b.add_is_variable(t.variable);
    if (in) {
      if (!sparsity.IsNull())
        b.add_sparsity(sparsity);
      b.add_has_rank(in->has_rank());
      if (!variants.IsNull())
        b.add_variant_tensors(variants);
      b.add_compression_type(in->compression_type());
    }
    return b.Finish();
  }

  /// Whether a tensor still has the quantization that it had, and that says more than its type.
  bool keeps_quantization(const PlannedTensor &t, const cs::Tensor &in) const {
    if (!t.type)
      return true;
    if (t.quant_changed)
      return false;
    return SourceTables::says_more(in.quantization(), t.type.quant());
  }

  Result<fb::Offset<cs::QuantizationParameters>>
  foreign_quantization(const PlannedSubgraph &g, const PlannedTensor &t,
                       const cs::QuantizationParameters &q) {
    if (!q.details_as_BlockwiseQuantization())
      return copy_.quantization(q, {});
    const Origin &origin = *request_.what.origin;
    const bool at_home = g.origin != kNoOrigin && t.origin >= origin.first_tensor[g.origin] &&
                         t.origin < origin.first_tensor[g.origin + 1];
    if (!at_home)
      return fail(ErrorKind::Unsupported, "circle.write.foreign",
                  "its block-wise scales are tensors of the subgraph that it was moved from",
                  "tensor '" + std::string(t.name) + "'");
    if (block_places_of_ != &g) {
      block_places_of_ = &g;
      block_places_.clear();
      for (size_t i = 0; i < g.tensors.size(); ++i)
        block_places_.try_emplace(g.tensors[i].origin, static_cast<i32>(i));
    }
    return copy_.quantization(q, [&](i32 old) {
      const auto it =
          block_places_.find(origin.first_tensor[g.origin] + static_cast<u32>(std::max(old, 0)));
      return old < 0 || it == block_places_.end() ? -1 : it->second;
    });
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

  const cs::Operator *source_of(const PlannedSubgraph &g, const PlannedOp &o) const {
    if (o.origin == kNoOrigin)
      return nullptr;
    return source_->subgraphs()->Get(g.origin)->operators()->Get(
        o.origin - request_.what.origin->first_op[g.origin]);
  }

  /// Some writers leave a table out whose fields have their defaults.
  static bool leaves_options_out(const cs::Operator &in, const OptionsDef &def, const Op &op,
                                 ir::Context &ctx) {
    if (options_table(in, def) || op.num_regions())
      return false;
    std::vector<ir::Attr> defaults;
    std::vector<i32> subgraphs;
    if (!decode_options(def, nullptr, ctx, defaults, subgraphs))
      return false;
    for (size_t i = 0; i < defaults.size(); ++i)
      if (!(defaults[i] == op.attr(static_cast<u32>(i))))
        return false;
    return true;
  }

  Result<fb::Offset<cs::Operator>> op(const PlannedSubgraph &g, const PlannedOp &planned,
                                      size_t &index, size_t &region) {
    const Op &op = *planned.op;
    const WireDef &w = wire(op.opcode());
    const cs::Operator *in = source_of(g, planned);
    std::vector<i32> subgraphs;
    for (u32 i = 0; i < op.num_regions(); ++i)
      subgraphs.push_back(static_cast<i32>(g.callees[region++]));
    fb::Offset<void> options;
    if (w.options && !(in && leaves_options_out(*in, *w.options, op, g.graph->context()))) {
      auto o = options_of(op, *w.options, subgraphs);
      if (!o) {
        o.error().kind = ErrorKind::Unsupported;
        o.error().object = std::string(op.name()) + ", " + o.error().object;
        return tl::unexpected(o.error());
      }
      options = *o;
    }
    const u32 inputs = planned.inputs, outputs = op.num_results();
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
    } else if (in) {
      mutating = copy_.vector(in->mutating_variable_inputs());
    }
    if (const u32 n = planned.intermediates) {
      intermediates = fbb_.CreateVector(g.indices.data() + index, n);
      index += n;
    }
    if (in && op.opcode() != op::CUSTOM && in->custom_options())
      custom = copy_.vector(in->custom_options());
    cs::OperatorBuilder b(fbb_);
    b.add_opcode_index(planned.code);
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
    if (in) {
      b.add_custom_options_format(in->custom_options_format());
      b.add_debug_metadata_index(in->debug_metadata_index());
    }
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
      auto offset = tensor(g, t);
      if (!offset)
        return tl::unexpected(offset.error());
      tensors.push_back(*offset);
      if (Status s = check_size(); !s)
        return tl::unexpected(s.error());
    }
    std::vector<fb::Offset<cs::Operator>> ops;
    ops.reserve(g.ops.size());
    size_t index = 0, region = 0;
    for (const PlannedOp &o : g.ops) {
      auto offset = op(g, o, index, region);
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
    const auto name = fbb_.CreateString(subgraph_name(number));
    const cs::SubGraph *in = g.origin == kNoOrigin ? nullptr : source_->subgraphs()->Get(g.origin);
    return cs::CreateSubGraph(fbb_, tensor_vector, inputs, outputs, op_vector, name,
                              in ? in->debug_metadata_index() : -1);
  }

  /// The main subgraph's name is the caller's, the others keep theirs; new ones are numbered.
  std::string subgraph_name(size_t number) const {
    const PlannedSubgraph &g = plan_.subgraphs[number];
    const cs::SubGraph *in = g.origin == kNoOrigin ? nullptr : source_->subgraphs()->Get(g.origin);
    const std::string was = in && in->name() ? in->name()->str() : std::string();
    const bool entry = g.region == &g.graph->body();
    if (in && (!entry || g.graph->name() == (was.empty() ? "main" : was)) &&
        (g.entry != 0 || !entry || options_.subgraph_name == was))
      return was;
    if (entry && g.entry != 0)
      return g.graph->name();
    const std::string base =
        options_.subgraph_name.empty() ? g.graph->name() : options_.subgraph_name;
    return entry ? base : base + "_" + std::to_string(number);
  }

  // --- the rest --------------------------------------------------------------------------------

  fb::Offset<fb::Vector<fb::Offset<cs::OperatorCode>>> codes() {
    std::vector<fb::Offset<cs::OperatorCode>> out;
    for (const PlannedCode &c : plan_.codes) {
      fb::Offset<fb::String> custom;
      if (!c.custom_code.empty())
        custom = fbb_.CreateString(c.custom_code.data(), c.custom_code.size());
      // The old field holds what fits; unknown numbers that no operator uses are kept, too.
      const auto deprecated = static_cast<i8>(c.code < -128 ? 0 : std::min(127, c.code));
      out.push_back(cs::CreateOperatorCode(fbb_, deprecated, custom, c.version,
                                           static_cast<cs::BuiltinOperator>(c.code)));
    }
    return fbb_.CreateVector(out);
  }

  /// Inputs (outputs) that are tensors: the place of a port among them, -1 for a literal.
  template <class Infos, class IsTensor>
  static std::vector<i32> ports(const Infos &infos, IsTensor &&is_tensor) {
    std::vector<i32> out;
    i32 next = 0;
    for (const auto &info : infos)
      out.push_back(is_tensor(info) ? next++ : -1);
    return out;
  }

  template <class Infos>
  fb::Offset<fb::Vector<fb::Offset<cs::TensorMap>>>
  map_of(std::span<const SignaturePort> named, const Infos &infos, const std::vector<i32> &place,
         const std::vector<i32> &tensors, bool names_are_the_graph_s) {
    std::vector<fb::Offset<cs::TensorMap>> out;
    std::vector<bool> mentioned(place.size(), false);
    for (const SignaturePort &p : named) {
      if (p.position >= place.size() || place[p.position] < 0)
        continue;
      const bool first = !mentioned[p.position] && names_are_the_graph_s;
      mentioned[p.position] = true;
      const std::string &name = first ? infos[p.position].name : p.name;
      const i32 tensor = tensors[static_cast<size_t>(place[p.position])];
      out.push_back(cs::CreateTensorMap(fbb_, fbb_.CreateString(name), static_cast<u32>(tensor)));
    }
    return fbb_.CreateVector(out);
  }

  fb::Offset<fb::Vector<fb::Offset<cs::SignatureDef>>> signatures() {
    std::vector<fb::Offset<cs::SignatureDef>> out;
    std::vector<bool> seen(request_.what.graphs.size(), false);
    for (const Signature &s : request_.signatures) {
      if (s.graph >= seen.size())
        continue;
      const ir::Graph &graph = *request_.what.graphs[s.graph];
      const PlannedSubgraph &g = plan_.subgraphs[plan_.entries[s.graph]];
      const bool first = !seen[s.graph];
      seen[s.graph] = true;
      const auto inputs =
          map_of(s.inputs, graph.inputs(),
                 ports(graph.inputs(), [](const ir::InputInfo &i) { return i.value != nullptr; }),
                 g.inputs, first);
      const auto outputs = map_of(s.outputs, graph.outputs(),
                                  ports(graph.outputs(),
                                        [](const ir::OutputInfo &o) {
                                          return o.operand >= 0 && o.kind == ir::OutputKind::User;
                                        }),
                                  g.outputs, first);
      const auto key = fbb_.CreateString(s.key);
      out.push_back(cs::CreateSignatureDef(fbb_, inputs, outputs, key, plan_.entries[s.graph]));
    }
    if (out.empty())
      return 0;
    return fbb_.CreateVector(out);
  }

  /// Metadata blobs are ordinary buffers, always inline.
  fb::Offset<fb::Vector<fb::Offset<cs::Metadata>>> metadata_vector() {
    std::vector<fb::Offset<cs::Metadata>> out;
    for (size_t i = 0; i < options_.metadata.size(); ++i) {
      const auto &[name, content] = options_.metadata[i];
      const u32 buffer = plan_.metadata_buffers[i];
      if (const auto [it, fresh] = inline_buffers_.try_emplace(buffer); fresh)
        it->second = cs::CreateBuffer(
            fbb_, fbb_.CreateVector(reinterpret_cast<const u8 *>(content.data()), content.size()));
      out.push_back(cs::CreateMetadata(fbb_, fbb_.CreateString(name), buffer));
    }
    return fbb_.CreateVector(out);
  }

  /// A buffer without content; with an empty vector when the one that it was had that.
  fb::Offset<cs::Buffer> empty_buffer(u32 origin) {
    const auto *old = source_ ? source_->buffers() : nullptr;
    if (!old || origin >= old->size() || !old->Get(origin)->data() ||
        old->Get(origin)->data()->size())
      return cs::CreateBuffer(fbb_);
    return cs::CreateBuffer(fbb_, fbb_.CreateVector(std::vector<u8>()));
  }

  fb::Offset<fb::Vector<fb::Offset<cs::Buffer>>> buffers() {
    // 48 bytes bound a buffer's table with its place in the vector; payloads are aligned.
    u64 total = fbb_.GetSize() + 48 * (plan_.buffers.size() + 64);
    for (const PlannedBuffer &b : plan_.buffers)
      total += b.metadata ? 0 : align_payload(b.bytes + 4);
    out_.external = total > options_.inline_limit;
    std::vector<fb::Offset<cs::Buffer>> out;
    out.reserve(plan_.buffers.size() + 1);
    out.push_back(empty_buffer(0)); // buffer 0 is "no data"
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const PlannedBuffer &b = plan_.buffers[i];
      if (b.metadata) {
        out.push_back(inline_buffers_.at(static_cast<u32>(i + 1)));
        continue;
      }
      if (b.bytes == 0) {
        out.push_back(empty_buffer(b.origin));
        continue;
      }
      const bool external = out_.external && b.bytes >= kSmallestExternal;
      const fb::uoffset_t start = fbb_.StartTable();
      if (external) {
        fbb_.AddElement<u64>(cs::Buffer::VT_SIZE, b.bytes, 0);
        fbb_.AddElement<u64>(cs::Buffer::VT_OFFSET, kPayloadAlignment, 0);
      } else {
        // A raw number in the place of an offset: what it points to is not in the builder.
        fbb_.AddElement<fb::uoffset_t>(cs::Buffer::VT_DATA, 1, 0);
      }
      out_.holes.push_back({fbb_.GetSize(), &b});
      out.push_back(fb::Offset<cs::Buffer>(fbb_.EndTable(start)));
    }
    return fbb_.CreateVector(out);
  }

  const HeaderRequest &request_;
  const WriteOptions &options_;
  const Plan &plan_;
  Header &out_;
  fb::FlatBufferBuilder &fbb_;
  SourceTables copy_;
  const cs::Model *source_ = nullptr;
  const PlannedSubgraph *block_places_of_ = nullptr;
  boost::unordered_flat_map<u32, i32> block_places_; // index by origin
  std::vector<Shape> shapes_;                        // by Type::id
  boost::unordered_flat_map<std::string, Shape> shape_vectors_;
  boost::unordered_flat_map<std::pair<const ir::Quantization *, u8>,
                            fb::Offset<cs::QuantizationParameters>>
      quants_;
  std::map<std::vector<i64>, fb::Offset<fb::Vector<i64>>> zero_points_;
  boost::unordered_flat_map<std::string, fb::Offset<void>, BytesHash> options_cache_;
  std::string key_;
  std::map<u32, fb::Offset<cs::Buffer>> inline_buffers_; // of metadata, by index
};

} // namespace

Status build_header(const HeaderRequest &request, const Plan &plan, Header &out) {
  return HeaderBuilder(request, plan, out).build();
}

} // namespace chute::circle

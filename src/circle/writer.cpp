#include "circle/writer.h"

#include "circle/header_builder.h"
#include "circle/reader.h"
#include "support/mapped_file.h"
#include "support/output_file.h"

#include <cstring>

namespace chute::circle {

namespace {

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
    const u64 data = external ? align_payload(end) : align_payload(end + 4);
    if (external) {
      std::memcpy(base + hole, &data, sizeof(data));
    } else {
      if (data + h.buffer->bytes > (u64{1} << 31) - 1)
        return fail(ErrorKind::Unsupported, "circle.write.too_large",
                    "the flatbuffer exceeds 2 GiB", "model", "lower inline_limit");
      const auto relative = static_cast<flatbuffers::uoffset_t>(data - 4 - hole);
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
    const bool as_it_lies = !b.constant || (b.constant->is_dense() &&
                                            ir::element_bits(b.constant->type.element()) != 4);
    // Weights of a mapped file do not stay in memory once they are written.
    if (as_it_lies)
      MappedFile::stream(b.constant ? b.constant->bytes() : b.raw,
                         [&](std::span<const std::byte> part) {
                           s = sink.write(part);
                           return s.has_value();
                         });
    else
      s = sink.write(stored_bytes(*b.constant, b.bytes, stats));
    if (!s)
      return s;
    position = places[i] + b.bytes;
  }
  stats.bytes = position;
  return {};
}

/// Plans, builds, places. `what.metadata` is that of the options.
Result<std::vector<u64>> prepare(HeaderRequest &request, Plan &plan, Header &header,
                                 WriteStats &stats) {
  request.what.metadata = request.options.metadata;
  auto made = make_plan(request.what, stats);
  if (!made)
    return tl::unexpected(made.error());
  plan = std::move(*made);
  stats.subgraphs = plan.subgraphs.size();
  for (const PlannedSubgraph &g : plan.subgraphs) {
    stats.operators += g.ops.size();
    stats.tensors += g.tensors.size();
  }
  stats.buffers = plan.buffers.size() + 1;
  stats.payload_bytes = plan.payload_bytes;
  if (Status s = build_header(request, plan, header); !s)
    return tl::unexpected(s.error());
  stats.external = header.external;
  return place_payloads(header);
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

Status write_to(HeaderRequest &request, const std::string &path, WriteStats *stats) {
  WriteStats local;
  WriteStats &s = stats ? *stats : local;
  s = {};
  Plan plan;
  Header header;
  auto places = prepare(request, plan, header, s);
  if (!places)
    return tl::unexpected(places.error());
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  if (Status ok = emit(header, *places, *file, s); !ok)
    return ok;
  return file->commit(request.options.sync);
}

Result<std::vector<std::byte>> write_to_memory(HeaderRequest &request, WriteStats *stats) {
  WriteStats local;
  WriteStats &s = stats ? *stats : local;
  s = {};
  Plan plan;
  Header header;
  auto places = prepare(request, plan, header, s);
  if (!places)
    return tl::unexpected(places.error());
  MemorySink sink;
  if (Status ok = emit(header, *places, sink, s); !ok)
    return tl::unexpected(ok.error());
  return std::move(sink.bytes);
}

/// The interface of a graph as a signature.
std::vector<Signature> signature_of(const ir::Graph &graph, const std::string &key) {
  if (key.empty() || (graph.inputs().empty() && graph.outputs().empty()))
    return {};
  Signature out;
  out.key = key;
  for (u32 i = 0; i < graph.inputs().size(); ++i)
    out.inputs.push_back({graph.inputs()[i].name, i});
  for (u32 i = 0; i < graph.outputs().size(); ++i)
    out.outputs.push_back({graph.outputs()[i].name, i});
  return {std::move(out)};
}

HeaderRequest request_of(const Model &model, const ModelWriteOptions &options) {
  HeaderRequest out;
  out.what.graphs.push_back(model.graph.get());
  for (const auto &g : model.more)
    out.what.graphs.push_back(g.get());
  out.what.origin = model.origin.get();
  out.what.compact = options.compact;
  out.options.description = model.description;
  out.options.subgraph_name = model.subgraph_name;
  out.options.metadata = model.metadata;
  out.options.inline_limit = options.inline_limit;
  out.options.sync = options.sync;
  out.signatures = model.signatures;
  out.version = model.version;
  return out;
}

} // namespace

Status write(const ir::Graph &graph, const std::string &path, const WriteOptions &options,
             WriteStats *stats) {
  const std::vector<Signature> signatures = signature_of(graph, options.signature_key);
  HeaderRequest request;
  request.what.graphs = {&graph};
  request.options = options;
  request.signatures = signatures;
  return write_to(request, path, stats);
}

Result<std::vector<std::byte>> write_bytes(const ir::Graph &graph, const WriteOptions &options,
                                           WriteStats *stats) {
  const std::vector<Signature> signatures = signature_of(graph, options.signature_key);
  HeaderRequest request;
  request.what.graphs = {&graph};
  request.options = options;
  request.signatures = signatures;
  return write_to_memory(request, stats);
}

Status write_model(const Model &model, const std::string &path, const ModelWriteOptions &options,
                   WriteStats *stats) {
  HeaderRequest request = request_of(model, options);
  return write_to(request, path, stats);
}

Result<std::vector<std::byte>>
write_model_bytes(const Model &model, const ModelWriteOptions &options, WriteStats *stats) {
  HeaderRequest request = request_of(model, options);
  return write_to_memory(request, stats);
}

} // namespace chute::circle

#include "tosa/writer.h"

#include "ir/context.h"
#include "ir/walk.h"
#include "schema/tosa_1_1_generated.h"
#include "support/output_file.h"
#include "tosa/attribute_codec.h"
#include "tosa/element.h"
#include "tosa/names.h"
#include "tosa/ops.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>

namespace chute::tosa {

namespace {

namespace fb = flatbuffers;
namespace ts = ::tosa;
using ir::Op;
using ir::Value;

/// Far enough from 2 GiB for everything but the payload.
constexpr u64 kPayloadLimit = (u64{1} << 31) - (u64{1} << 27);

struct HashOfContent {
  using is_avalanching = void;
  size_t operator()(const ir::ContentHash &h) const { return h.low ^ (h.high * 31); }
};

/// Finds the constant that an equal one was written as. A constant is hashed only when another one
/// has its type.
class Deduplicator {
public:
  /// Null when `c` is new.
  Value *find_or_add(const ir::Constant &c, Value *v) {
    auto [first, fresh] = first_.try_emplace(c.type.id(), Entry{&c, v});
    if (fresh)
      return nullptr;
    if (Entry &e = first->second; e.constant) {
      by_hash_.emplace(e.constant->hash(), e.value);
      e.constant = nullptr;
    }
    const auto [at, is_new] = by_hash_.try_emplace(c.hash(), v);
    return is_new ? nullptr : at->second;
  }

private:
  struct Entry {
    const ir::Constant *constant; ///< null once it is in by_hash_
    Value *value;
  };
  boost::unordered_flat_map<u32, Entry> first_;
  boost::unordered_flat_map<ir::ContentHash, Value *, HashOfContent> by_hash_;
};

class FileBuilder {
public:
  FileBuilder(const ir::Graph &graph, const WriteOptions &options, WriteStats &stats)
      : graph_(graph), options_(options), stats_(stats), names_(graph) {}

  Status build(fb::FlatBufferBuilder &fbb) {
    names_.interface();
    fbb_ = &fbb;
    std::vector<fb::Offset<ts::TosaRegion>> regions;
    jobs_.push_back({&graph_.body(), "main"});
    while (!jobs_.empty()) {
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      auto region = write_region(*job.region, job.name);
      if (!region)
        return tl::unexpected(region.error());
      regions.push_back(*region);
    }
    stats_.regions = regions.size();
    const auto version = ts::CreateVersion(fbb, 1, minor_, 0, minor_ > 0);
    const auto all = fbb.CreateVector(regions);
    fbb.Finish(ts::CreateTosaGraph(fbb, version, all), ts::TosaGraphIdentifier());
    stats_.minor = minor_;
    return {};
  }

  u64 payload_bytes() const { return payload_; }
  /// What build() refuses, and the sizes that it needs; cheap.
  Status check();

private:
  struct Job {
    const ir::Region *region;
    std::string name;
  };
  /// What one block collects.
  struct Block {
    std::vector<fb::Offset<ts::TosaOperator>> operators;
    std::vector<fb::Offset<ts::TosaTensor>> tensors;
    std::vector<fb::Offset<ts::TosaShape>> shapes;
    Deduplicator constants, shape_constants;
    /// Per constant value (and kind of use): the value that it was written as.
    boost::unordered_flat_map<const Value *, Value *> written, written_shapes;
    boost::unordered_flat_map<const Value *, bool> defined;
  };
  using Names = std::vector<fb::Offset<fb::String>>;

  fb::Offset<fb::String> name_of(const Value *v, bool shape) {
    auto &table = shape ? shape_names_ : value_names_;
    fb::Offset<fb::String> &at = table[v];
    if (at.IsNull())
      at = fbb_->CreateString(names_.of(v, shape));
    return at;
  }

  std::vector<i32> dims_of(ir::Type t) const {
    std::vector<i32> dims;
    for (ir::SymInt d : t.shape())
      dims.push_back(d.is_symbolic() ? -1 : static_cast<i32>(d.value()));
    return dims;
  }

  /// The bytes as the file has them, behind the builder's alignment.
  fb::Offset<fb::Vector<u8>> data_of(const ir::Constant &c) {
    const size_t size = c.dense_bytes();
    u8 *to = nullptr;
    if (is_packed(c.type.element())) {
      std::vector<std::byte> plain(size);
      c.copy_dense(plain.data());
      fbb_->ForceVectorAlignment((size + 1) / 2, 1, 8);
      const auto data = fbb_->CreateUninitializedVector((size + 1) / 2, 1, &to);
      for (size_t i = 0; i < size; i += 2) {
        const auto low = static_cast<u8>(plain[i]) & 15;
        const auto high = i + 1 < size ? static_cast<u8>(plain[i + 1]) & 15 : 0;
        to[i / 2] = static_cast<u8>(low | high << 4);
      }
      return data;
    }
    if (c.type.element() == ir::ElementType::I48) { // in memory the low six bytes of eight
      const size_t n = size / sizeof(i64);
      std::vector<std::byte> plain(size);
      c.copy_dense(plain.data());
      fbb_->ForceVectorAlignment(n * kBytesOfI48, 1, 8);
      const auto data = fbb_->CreateUninitializedVector(n * kBytesOfI48, 1, &to);
      for (size_t i = 0; i < n; ++i)
        std::memcpy(to + i * kBytesOfI48, plain.data() + i * sizeof(i64), kBytesOfI48);
      return data;
    }
    fbb_->ForceVectorAlignment(size, 1, 8);
    const auto data = fbb_->CreateUninitializedVector(size, 1, &to);
    c.copy_dense(reinterpret_cast<std::byte *>(to));
    return data;
  }

  fb::Offset<void> empty_attributes() {
    if (empty_.IsNull())
      empty_ = fb::Offset<void>(fbb_->EndTable(fbb_->StartTable()));
    return empty_;
  }

  void add_operator(Block &b, u32 code, fb::Offset<void> attributes, const Names &inputs,
                    const Names &outputs, ir::LocId loc) {
    const auto in = fbb_->CreateVector(inputs);
    const auto out = fbb_->CreateVector(outputs);
    b.operators.push_back(ts::CreateTosaOperator(*fbb_, static_cast<ts::Op>(code),
                                                 static_cast<ts::Attribute>(code), attributes, in,
                                                 out, location(loc)));
  }

  fb::Offset<ts::OpLocation> location(ir::LocId loc) {
    if (!options_.locations || !loc.id)
      return {};
    fb::Offset<ts::OpLocation> &at = locations_[loc.id];
    if (at.IsNull()) {
      const ir::Provenance p = graph_.locations().resolve(loc);
      std::string text = p.module_path;
      for (const std::string &node : p.nodes)
        text += (text.empty() ? "" : " ") + node;
      at = ts::CreateOpLocation(*fbb_, fbb_->CreateString(text));
    }
    return at;
  }

  void add_tensor(Block &b, const Value *v, bool shape, const ir::Constant *c) {
    const auto data = c ? data_of(*c) : fb::Offset<fb::Vector<u8>>();
    const auto name = name_of(v, shape);
    if (shape) {
      const ir::Type t = v->type();
      const u32 rank =
          t.rank() == 1 && t.dim(0).is_static() ? static_cast<u32>(t.dim(0).value()) : 1;
      b.shapes.push_back(ts::CreateTosaShape(*fbb_, name, rank, data));
      return;
    }
    const auto dims = fbb_->CreateVector(dims_of(v->type()));
    b.tensors.push_back(ts::CreateTosaTensor(
        *fbb_, name, dims, static_cast<ts::DType>(*to_wire_type(v->type().element())), data));
  }

  /// The operand as the block knows it; writes a constant that is new.
  Value *use(Block &b, Value *v, bool shape) {
    const Op *p = v->producer();
    if (!p || p->opcode() != ir::core_op::constant)
      return v;
    Value *&at = (shape ? b.written_shapes : b.written)[v];
    if (at)
      return at;
    const ir::Constant &c = *p->attr(0u).as_constant();
    at = (shape ? b.shape_constants : b.constants).find_or_add(c, v);
    if (at) {
      ++stats_.constants_shared;
      return at;
    }
    at = v;
    add_tensor(b, v, shape, &c);
    add_operator(b, shape ? kConstShapeCode : kConstCode, empty_attributes(), {},
                 {name_of(v, shape)}, p->loc());
    ++stats_.constants;
    return v;
  }

  Status write_op(Block &b, const Op &op) {
    const WireDef &def = wire(op.opcode());
    Names inputs, outputs;
    for (u32 i = 0; i < op.num_operands(); ++i) {
      const bool shape = def.takes_shape(i);
      Value *v = use(b, op.operand(i), shape);
      if (!is_constant(v) && !b.defined.contains(v))
        return fail(ErrorKind::Unsupported, "tosa.write.capture",
                    "a region uses a value from outside of it", std::string(op.name()),
                    "pass the value as an operand");
      inputs.push_back(name_of(v, shape));
    }
    for (const Value &r : op.results()) {
      add_tensor(b, &r, def.shape_result, nullptr);
      b.defined.emplace(&r, true);
      outputs.push_back(name_of(&r, def.shape_result));
    }
    std::vector<std::string> graphs;
    for (u32 i = 0; i < op.num_regions(); ++i) {
      graphs.push_back(names_.region(op, i));
      jobs_.push_back({op.region(i), graphs.back()});
    }
    fb::Offset<void> attributes = empty_attributes();
    if (!def.fields.empty()) {
      auto encoded = encode_attributes(*fbb_, op, graphs);
      if (!encoded)
        return tl::unexpected(encoded.error());
      attributes = *encoded;
    }
    add_operator(b, def.code, attributes, inputs, outputs, op.loc());
    if (options_.names)
      for (const Value &v : op.results())
        options_.names->emplace_back(names_.of(&v, false), op.loc());
    return {};
  }

  static bool is_constant(const Value *v) {
    return v->producer() && v->producer()->opcode() == ir::core_op::constant;
  }

  Result<fb::Offset<ts::TosaRegion>> write_region(const ir::Region &region,
                                                  const std::string &name) {
    Block b;
    Names inputs, outputs;
    for (const Value *v : region.args()) {
      add_tensor(b, v, false, nullptr);
      b.defined.emplace(v, true);
      inputs.push_back(name_of(v, false));
    }
    for (const Op &op : region) {
      if (op.opcode() == ir::core_op::constant)
        continue;
      if (op.opcode() != ir::core_op::ret) {
        if (Status s = write_op(b, op); !s)
          return tl::unexpected(s.error());
        continue;
      }
      for (u32 i = 0; i < op.num_operands(); ++i)
        outputs.push_back(name_of(use(b, op.operand(i), false), false));
    }
    stats_.operators += b.operators.size();
    const auto operators = fbb_->CreateVector(b.operators);
    const auto tensors = fbb_->CreateVector(b.tensors);
    const auto in = fbb_->CreateVector(inputs);
    const auto out = fbb_->CreateVector(outputs);
    const auto shapes = fbb_->CreateVector(b.shapes);
    const auto label = fbb_->CreateString(name);
    const auto block = ts::CreateTosaBasicBlock(*fbb_, label, operators, tensors, in, out, shapes);
    const auto blocks = fbb_->CreateVector(&block, 1);
    return ts::CreateTosaRegion(*fbb_, label, blocks);
  }

  const ir::Graph &graph_;
  const WriteOptions &options_;
  WriteStats &stats_;
  NameTable names_;
  fb::FlatBufferBuilder *fbb_ = nullptr;
  std::deque<Job> jobs_;
  boost::unordered_flat_map<const Value *, fb::Offset<fb::String>> value_names_, shape_names_;
  boost::unordered_flat_map<u32, fb::Offset<ts::OpLocation>> locations_;
  fb::Offset<void> empty_;
  u64 payload_ = 0;
  u8 minor_ = 0;
};

Status FileBuilder::check() {
  payload_ = 0;
  minor_ = options_.minor.value_or(0);
  std::vector<std::string> foreign;
  std::optional<Diagnostic> error;
  const auto complain = [&](std::string code, std::string message, const Value *v) {
    if (!error)
      error = fail(ErrorKind::Unsupported, std::move(code), std::move(message),
                   "%" + names_.of(v, false))
                  .value();
  };
  const auto check_value = [&](const Value *v) {
    if (!v->type().is_tensor())
      return complain("tosa.write.type", "is no tensor", v);
    const auto type = to_wire_type(v->type().element());
    if (!type)
      return complain("tosa.write.type",
                      "has element type " +
                          std::string(ir::element_type_name(v->type().element())) +
                          ", which TOSA does not have",
                      v);
    for (ir::SymInt d : v->type().shape())
      if (d.is_static() && (d.value() < 0 || d.value() > INT32_MAX))
        return complain("tosa.write.type", "has a dimension that does not fit", v);
    const bool is_new = *type > static_cast<u32>(ts::DType_FP8E5M2);
    if (is_new && !is_constant(v))
      minor_ = std::max<u8>(minor_, 1);
  };
  for (const Value *v : graph_.body().args())
    check_value(v);
  ir::walk(graph_, [&](const Op &op) {
    for (const ir::Region *r : op.regions())
      for (const Value *v : r->args())
        check_value(v);
    if (op.opcode() == ir::core_op::ret)
      return;
    if (op.opcode() == ir::core_op::constant) {
      const ir::Constant &c = *op.attr(0u).as_constant();
      if (!c.has_data)
        complain("tosa.write.no_data", "is a constant whose bytes are not in the program",
                 op.result());
      else
        payload_ += c.dense_bytes();
    } else if (!is_tosa(op.opcode())) {
      const std::string name(op.name());
      if (std::find(foreign.begin(), foreign.end(), name) == foreign.end())
        foreign.push_back(name);
      return;
    } else if (const WireDef &def = wire(op.opcode()); def.minor > minor_) {
      minor_ = def.minor;
    } else if (def.shape_result) {
      return;
    }
    for (const Value &v : op.results())
      check_value(&v);
  });
  if (!foreign.empty()) {
    std::string list;
    for (const std::string &name : foreign)
      list += (list.empty() ? "" : ", ") + name;
    return fail(ErrorKind::Unsupported, "tosa.write.operator",
                "the graph holds operators that are not TOSA's: " + list, graph_.name(),
                "lower the program to TOSA first");
  }
  if (error)
    return tl::unexpected(std::move(*error));
  if (options_.minor && *options_.minor < minor_)
    return fail(ErrorKind::Unsupported, "tosa.write.version",
                "the program needs TOSA 1." + std::to_string(minor_), graph_.name(),
                "allow that version");
  if (payload_ > kPayloadLimit)
    return fail(ErrorKind::Unsupported, "tosa.write.too_large",
                "the constants have " + std::to_string(payload_) +
                    " bytes; a TOSA file ends at 2 GiB",
                graph_.name(), "store the weights in a smaller type, or split the model");
  return {};
}

Status build(const ir::Graph &graph, const WriteOptions &options, WriteStats &stats,
             std::unique_ptr<fb::FlatBufferBuilder> &out) {
  FileBuilder builder(graph, options, stats);
  if (Status s = builder.check(); !s)
    return s;
  // One allocation: growing would copy the weights.
  const u64 estimate = builder.payload_bytes() + u64{512} * (graph.num_ops() + 8);
  out = std::make_unique<fb::FlatBufferBuilder>(std::min<u64>(estimate, u64{1} << 30));
  if (Status s = builder.build(*out); !s)
    return s;
  stats.bytes = out->GetSize();
  return {};
}

} // namespace

Result<std::vector<std::byte>> write_bytes(const ir::Graph &graph, const WriteOptions &options,
                                           WriteStats *stats) {
  WriteStats local;
  std::unique_ptr<fb::FlatBufferBuilder> fbb;
  if (Status s = build(graph, options, stats ? *stats : local, fbb); !s)
    return tl::unexpected(s.error());
  const auto *data = reinterpret_cast<const std::byte *>(fbb->GetBufferPointer());
  return std::vector<std::byte>(data, data + fbb->GetSize());
}

Status write(const ir::Graph &graph, const std::string &path, const WriteOptions &options,
             WriteStats *stats) {
  WriteStats local;
  std::unique_ptr<fb::FlatBufferBuilder> fbb;
  if (Status s = build(graph, options, stats ? *stats : local, fbb); !s)
    return s;
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  const auto *data = reinterpret_cast<const std::byte *>(fbb->GetBufferPointer());
  if (Status s = file->write(std::span(data, fbb->GetSize())); !s)
    return s;
  return file->commit();
}

} // namespace chute::tosa

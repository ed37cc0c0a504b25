#include "circle/reader.h"

#include "circle/ops.h"
#include "circle/origin.h"
#include "circle/subgraph_reader.h"
#include "support/mapped_file.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <optional>

namespace chute::circle {

namespace {

namespace cs = ::circle;

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

/// Subgraphs that are called from several places are read once for each. This many operators more
/// than the file has are read before that is refused.
constexpr u64 kMostCopies = 100'000;

using TensorMaps = flatbuffers::Vector<flatbuffers::Offset<cs::TensorMap>>;

/// The ports that one side of a signature names. The k-th mention of a tensor is its k-th port;
/// further ones are its last.
std::vector<SignaturePort> ports_of(const TensorMaps *map,
                                    const flatbuffers::Vector<i32> *tensors) {
  boost::unordered_flat_map<u32, std::deque<u32>> positions;
  for (u32 i = 0; i < size_of(tensors); ++i)
    positions[static_cast<u32>(tensors->Get(i))].push_back(i);
  std::vector<SignaturePort> out;
  for (u32 i = 0; i < size_of(map); ++i) {
    const cs::TensorMap &m = *map->Get(i);
    const auto it = positions.find(m.tensor_index());
    if (it == positions.end())
      continue; // names no port: an error, but none that keeps a graph from being built
    out.push_back({m.name() ? m.name()->str() : std::string(), it->second.front()});
    if (it->second.size() > 1)
      it->second.pop_front();
  }
  return out;
}

/// Names of the ports: the signature's where there is one, otherwise the tensors'.
template <class Names>
std::vector<std::string> port_names(size_t count, const std::vector<SignaturePort> *named,
                                    Names &&tensor_name) {
  std::vector<std::string> out(count);
  std::vector<bool> known(count, false);
  if (named)
    for (const SignaturePort &p : *named)
      if (!known[p.position]) {
        out[p.position] = p.name;
        known[p.position] = true;
      }
  for (u32 i = 0; i < count; ++i)
    if (const flatbuffers::String *name = known[i] ? nullptr : tensor_name(i))
      out[i] = name->str();
  return out;
}

void set_interface(const cs::SubGraph &sub, const Signature *signature, ir::Graph &graph) {
  const auto names = [&](const flatbuffers::Vector<i32> *tensors,
                         const std::vector<SignaturePort> *named) {
    return port_names(size_of(tensors), named, [&](u32 i) {
      return sub.tensors()->Get(static_cast<u32>(tensors->Get(i)))->name();
    });
  };
  const auto inputs = names(sub.inputs(), signature ? &signature->inputs : nullptr);
  for (u32 i = 0; i < inputs.size(); ++i) {
    ir::InputInfo info;
    info.name = inputs[i];
    info.value = graph.body().arg(i);
    graph.inputs().push_back(std::move(info));
  }
  const auto outputs = names(sub.outputs(), signature ? &signature->outputs : nullptr);
  std::vector<ir::OutputInfo> all;
  for (u32 i = 0; i < outputs.size(); ++i) {
    ir::OutputInfo info;
    info.name = outputs[i];
    info.operand = static_cast<i32>(i);
    all.push_back(std::move(info));
  }
  // Variables that the program writes are there already.
  for (ir::OutputInfo &o : graph.outputs())
    if (o.kind == ir::OutputKind::BufferMutation)
      all.push_back(std::move(o));
  graph.outputs() = std::move(all);
}

void read_metadata(const FileView &file, Model &out) {
  const cs::Model &model = *file.model;
  for (u32 i = 0; i < size_of(model.metadata()); ++i) {
    const cs::Metadata *m = model.metadata()->Get(i);
    const auto bytes = payload(file, m->buffer());
    out.metadata.emplace_back(
        m->name() ? m->name()->str() : std::string(),
        std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  }
}

/// Reads a file's entry points.
class ModelReader {
public:
  ModelReader(ir::Context &ctx, const FileView &file, std::shared_ptr<const void> owner)
      : ctx_(ctx), file_(file), model_(*file.model), owner_(std::move(owner)) {}

  /// With `only`, that subgraph is the main one and no other an entry.
  Result<Model> run(std::optional<u32> only = {}) {
    const u32 count = model_.subgraphs()->size();
    if (only && *only >= count)
      return fail(ErrorKind::Usage, "circle.file.subgraph",
                  "there is no subgraph " + std::to_string(*only), "model.subgraphs",
                  "the file has " + std::to_string(count) + ", counted from 0");
    main_ = only.value_or(0);
    auto origin = std::make_shared<Origin>();
    origin_ = origin.get();
    origin_->bytes = file_.bytes;
    origin_->owner = owner_;
    u32 tensors = 0, ops = 0;
    for (u32 s = 0; s < count; ++s) {
      origin_->first_tensor.push_back(tensors);
      origin_->first_op.push_back(ops);
      tensors += size_of(model_.subgraphs()->Get(s)->tensors());
      ops += size_of(model_.subgraphs()->Get(s)->operators());
    }
    origin_->first_tensor.push_back(tensors);
    origin_->first_op.push_back(ops);
    origin_->used.assign(tensors, false);
    allowed_ = kMostCopies + ops + count;
    reached_.assign(count, false);
    entry_.assign(count, kNoOrigin);
    const std::vector<bool> named = subgraphs_with_signature();
    const std::vector<bool> called = called_subgraphs();
    for (u32 s = 0; s < count; ++s)
      if (only ? s == *only : s == 0 || named[s] || (!reached_[s] && !called[s]))
        if (Status ok = read_entry(s); !ok)
          return tl::unexpected(ok.error());
    read_signatures();
    out_.description = model_.description() ? model_.description()->str() : std::string();
    out_.version = model_.version();
    read_metadata(file_, out_);
    out_.origin = std::move(origin);
    return std::move(out_);
  }

private:
  Status read_entry(u32 root) {
    const cs::SubGraph &sub = *model_.subgraphs()->Get(root);
    const std::string name = sub.name() ? sub.name()->str() : std::string();
    auto graph = std::make_unique<ir::Graph>(ctx_, name.empty() ? "main" : name);
    FileReader reader(file_, owner_, *graph, origin_, &origin_->graphs.emplace_back());
    struct Job {
      u32 subgraph;
      ir::Region *region;
    };
    std::deque<Job> jobs{{root, &graph->body()}};
    const NestedSubgraph nested = [&](u32 s) -> Result<ir::Region *> {
      if (Status ok = allow(s); !ok)
        return tl::unexpected(ok.error());
      ir::Region *region = graph->create_region();
      jobs.push_back({s, region});
      return region;
    };
    // The first entry is the file's own size; what is read again counts.
    if (reached_[root])
      if (Status ok = allow(root); !ok)
        return ok;
    while (!jobs.empty()) {
      const Job job = jobs.front();
      jobs.pop_front();
      reached_[job.subgraph] = true;
      if (Status s = read_subgraph(reader, job.subgraph, *job.region, nested, {}); !s) {
        s.error().object =
            "model.subgraphs[" + std::to_string(job.subgraph) + "]." + s.error().object;
        return s;
      }
    }
    entry_[root] = static_cast<u32>(origin_->graphs.size() - 1);
    set_interface(sub, nullptr, *graph);
    if (root == main_) {
      out_.subgraph_name = name;
      out_.graph = std::move(graph);
    } else {
      out_.more.push_back(std::move(graph));
    }
    return {};
  }

  Status allow(u32 s) {
    const u64 cost = size_of(model_.subgraphs()->Get(s)->operators()) +
                     size_of(model_.subgraphs()->Get(s)->tensors()) / 4 + 1;
    if (cost > allowed_)
      return fail(ErrorKind::BadInput, "circle.file.excess",
                  "subgraphs that are called from many places make the model larger than the file "
                  "allows",
                  "model.subgraphs[" + std::to_string(s) + "]");
    allowed_ -= cost;
    return {};
  }

  std::vector<bool> subgraphs_with_signature() const {
    std::vector<bool> out(model_.subgraphs()->size(), false);
    for (u32 i = 0; i < size_of(model_.signature_defs()); ++i)
      if (const u32 s = model_.signature_defs()->Get(i)->subgraph_index(); s < out.size())
        out[s] = true;
    return out;
  }

  /// Which subgraphs an operator refers to.
  std::vector<bool> called_subgraphs() const {
    std::vector<bool> out(model_.subgraphs()->size(), false);
    for (u32 s = 0; out.size() > 1 && s < out.size(); ++s)
      for (u32 o = 0; o < size_of(model_.subgraphs()->Get(s)->operators()); ++o)
        for_each_callee(*model_.subgraphs()->Get(s)->operators()->Get(o), [&](u32 callee) {
          if (callee < out.size())
            out[callee] = true;
        });
    return out;
  }

  template <class Visit>
  void for_each_callee(const cs::Operator &op, Visit &&visit) const {
    const i32 code = effective_code(*model_.operator_codes()->Get(op.opcode_index()));
    const OptionsDef *def = wire(*from_wire(code)).options;
    const flatbuffers::Table *table = def ? options_table(op, *def) : nullptr;
    for (size_t i = 0; def && i < def->fields.size(); ++i) {
      const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * def->fields[i].slot);
      if (def->fields[i].type == FieldType::Subgraph)
        visit(static_cast<u32>(table ? table->GetField<i32>(slot, 0) : 0));
      else if (def->fields[i].type == FieldType::Subgraphs && table)
        if (const auto *v = table->GetPointer<const flatbuffers::Vector<i32> *>(slot))
          for (i32 callee : *v)
            visit(static_cast<u32>(callee));
    }
  }

  void read_signatures() {
    for (u32 i = 0; i < size_of(model_.signature_defs()); ++i) {
      const cs::SignatureDef &def = *model_.signature_defs()->Get(i);
      if (def.subgraph_index() >= entry_.size() || entry_[def.subgraph_index()] == kNoOrigin)
        continue;
      const cs::SubGraph &sub = *model_.subgraphs()->Get(def.subgraph_index());
      Signature signature;
      signature.key = def.signature_key() ? def.signature_key()->str() : std::string();
      signature.graph = entry_[def.subgraph_index()];
      signature.inputs = ports_of(def.inputs(), sub.inputs());
      signature.outputs = ports_of(def.outputs(), sub.outputs());
      const bool first =
          std::none_of(out_.signatures.begin(), out_.signatures.end(),
                       [&](const Signature &other) { return other.graph == signature.graph; });
      if (first) {
        ir::Graph &graph = signature.graph == 0 ? *out_.graph : *out_.more[signature.graph - 1];
        graph.inputs().clear();
        set_interface(sub, &signature, graph);
        if (signature.graph == 0)
          out_.signature_key = signature.key;
      }
      out_.signatures.push_back(std::move(signature));
    }
  }

  ir::Context &ctx_;
  const FileView &file_;
  const cs::Model &model_;
  std::shared_ptr<const void> owner_;
  Model out_;
  Origin *origin_ = nullptr;
  u32 main_ = 0;
  u64 allowed_ = 0;           // operators that may still be read again
  std::vector<bool> reached_; // by subgraph
  std::vector<u32> entry_;    // by subgraph: the graph that starts there
};

Result<Model> read_checked(ir::Context &ctx, std::span<const std::byte> bytes,
                           std::shared_ptr<const void> owner, std::optional<u32> only) {
  register_dialect();
  if (auto copy = aligned_copy(bytes))
    owner = std::move(copy);
  auto view = open_view(bytes);
  if (!view)
    return tl::unexpected(view.error());
  Diagnostics problems;
  StructureOptions options;
  options.only_fatal = true;
  options.max_findings = 1;
  check_structure(*view, options, problems);
  if (!problems.all().empty())
    return tl::unexpected<Diagnostic>(problems.all().front());
  return ModelReader(ctx, *view, std::move(owner)).run(only);
}

} // namespace

Result<Model> read_model(ir::Context &ctx, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner) {
  return read_checked(ctx, bytes, std::move(owner), {});
}

Result<Model> read_subgraph_model(ir::Context &ctx, std::span<const std::byte> bytes,
                                  std::shared_ptr<const void> owner, u32 subgraph) {
  return read_checked(ctx, bytes, std::move(owner), subgraph);
}

Result<Model> read_model(ir::Context &ctx, const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return tl::unexpected(file.error());
  return read_model(ctx, (*file)->bytes(), *file);
}

Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, const std::string &path) {
  auto model = read_model(ctx, path);
  if (!model)
    return tl::unexpected(model.error());
  return std::move(model->graph);
}

Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, std::span<const std::byte> bytes,
                                        std::shared_ptr<const void> owner) {
  auto model = read_model(ctx, bytes, std::move(owner));
  if (!model)
    return tl::unexpected(model.error());
  return std::move(model->graph);
}

} // namespace chute::circle

#include "circle/reader.h"

#include "circle/ops.h"
#include "circle/subgraph_reader.h"
#include "support/mapped_file.h"

#include <deque>

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

const cs::SignatureDef *main_signature(const cs::Model &model) {
  for (u32 i = 0; i < size_of(model.signature_defs()); ++i)
    if (model.signature_defs()->Get(i)->subgraph_index() == 0)
      return model.signature_defs()->Get(i);
  return nullptr;
}

/// The names that one side of a signature gives to tensors. A tensor that is listed several times
/// has its names in the order of the ports.
class PortNames {
public:
  explicit PortNames(const flatbuffers::Vector<flatbuffers::Offset<cs::TensorMap>> *map) {
    for (u32 i = 0; i < size_of(map); ++i)
      if (const cs::TensorMap *m = map->Get(i); m->name())
        names_[m->tensor_index()].push_back(m->name()->str());
  }
  std::string take(u32 tensor, const flatbuffers::String *fallback) {
    const auto it = names_.find(tensor);
    if (it == names_.end())
      return fallback ? fallback->str() : std::string();
    std::deque<std::string> &left = it->second;
    std::string name = left.front();
    if (left.size() > 1)
      left.pop_front();
    return name;
  }

private:
  boost::unordered_flat_map<u32, std::deque<std::string>> names_;
};

void set_interface(const FileView &file, ir::Graph &graph, Model &out) {
  const cs::Model &model = *file.model;
  const cs::SubGraph &main = *model.subgraphs()->Get(0);
  const cs::SignatureDef *signature = main_signature(model);
  if (signature && signature->signature_key())
    out.signature_key = signature->signature_key()->str();
  const auto tensor_name = [&](u32 t) { return main.tensors()->Get(t)->name(); };
  PortNames inputs(signature ? signature->inputs() : nullptr);
  for (u32 i = 0; i < size_of(main.inputs()); ++i) {
    const auto t = static_cast<u32>(main.inputs()->Get(i));
    ir::InputInfo info;
    info.name = inputs.take(t, tensor_name(t));
    info.value = graph.body().arg(i);
    graph.inputs().push_back(std::move(info));
  }
  PortNames outputs(signature ? signature->outputs() : nullptr);
  for (u32 i = 0; i < size_of(main.outputs()); ++i) {
    const auto t = static_cast<u32>(main.outputs()->Get(i));
    ir::OutputInfo info;
    info.name = outputs.take(t, tensor_name(t));
    info.operand = static_cast<i32>(i);
    graph.outputs().push_back(std::move(info));
  }
}

void read_metadata(const FileView &file, Model &out) {
  const cs::Model &model = *file.model;
  if (model.description())
    out.description = model.description()->str();
  for (u32 i = 0; i < size_of(model.metadata()); ++i) {
    const cs::Metadata *m = model.metadata()->Get(i);
    const auto bytes = payload(file, m->buffer());
    out.metadata.emplace_back(
        m->name() ? m->name()->str() : std::string(),
        std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  }
}

Result<Model> read_view(ir::Context &ctx, const FileView &file, std::shared_ptr<const void> owner) {
  Model out;
  const cs::Model &model = *file.model;
  const cs::SubGraph &main = *model.subgraphs()->Get(0);
  out.subgraph_name = main.name() ? main.name()->str() : std::string();
  out.graph =
      std::make_unique<ir::Graph>(ctx, out.subgraph_name.empty() ? "main" : out.subgraph_name);
  FileReader reader(file, std::move(owner), *out.graph);
  struct Job {
    u32 subgraph;
    ir::Region *region;
  };
  std::deque<Job> jobs{{0, &out.graph->body()}};
  u64 allowed = kMostCopies;
  for (u32 s = 0; s < model.subgraphs()->size(); ++s)
    allowed += size_of(model.subgraphs()->Get(s)->operators()) + 1;
  std::vector<bool> reached(model.subgraphs()->size(), false);
  const NestedSubgraph nested = [&](u32 s) -> Result<ir::Region *> {
    const u64 cost = size_of(model.subgraphs()->Get(s)->operators()) +
                     size_of(model.subgraphs()->Get(s)->tensors()) / 4 + 1;
    if (cost > allowed)
      return fail(ErrorKind::BadInput, "circle.file.excess",
                  "subgraphs that are called from many places make the model larger than the file "
                  "allows",
                  "model.subgraphs[" + std::to_string(s) + "]");
    allowed -= cost;
    ir::Region *region = out.graph->create_region();
    jobs.push_back({s, region});
    return region;
  };
  while (!jobs.empty()) {
    const Job job = jobs.front();
    jobs.pop_front();
    reached[job.subgraph] = true;
    if (Status s = read_subgraph(reader, job.subgraph, *job.region, nested, {}); !s) {
      s.error().object =
          "model.subgraphs[" + std::to_string(job.subgraph) + "]." + s.error().object;
      return tl::unexpected(s.error());
    }
  }
  out.dropped_subgraphs = static_cast<size_t>(std::count(reached.begin(), reached.end(), false));
  set_interface(file, *out.graph, out);
  if (const u32 n = size_of(model.signature_defs()))
    out.dropped_signatures = n - (main_signature(model) ? 1 : 0);
  read_metadata(file, out);
  return out;
}

} // namespace

Result<Model> read_model(ir::Context &ctx, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner) {
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
  return read_view(ctx, *view, std::move(owner));
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

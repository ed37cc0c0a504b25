#include "toolkit/inputs.h"

#include "eval/npz.h"
#include "eval/quantized.h"
#include "ir/element_convert.h"
#include "ir/sym_table.h"
#include "quant/params.h"

#include <algorithm>

namespace chute::toolkit {

namespace {

class InputMaker {
public:
  InputMaker(const ir::Graph &graph, u64 seed) : graph_(graph), state_(seed) {}

  Result<eval::Tensor> make(const ir::InputInfo &input) {
    const ir::Type type = input.value->type();
    if (!type.is_tensor()) {
      switch (type.kind()) {
      case ir::TypeKind::Float: return eval::Tensor::scalar(ir::ElementType::F64, uniform());
      case ir::TypeKind::Bool: return eval::Tensor::scalar_int(ir::ElementType::Bool, next() & 1);
      case ir::TypeKind::Int: return eval::Tensor::scalar_int(ir::ElementType::I64, 2);
      default:
        return fail(ErrorKind::Unsupported, "run.input.kind", "no value can be made up for it",
                    input.name, "give it with --inputs");
      }
    }
    eval::Shape shape;
    for (ir::SymInt d : type.shape())
      shape.push_back(extent(d));
    eval::Tensor t = eval::Tensor::zeros(type.element(), shape);
    const auto item = static_cast<i64>(t.item_bytes());
    for (i64 i = 0; i < t.num_elements(); ++i) {
      std::byte *to = t.mutable_data() + i * item;
      if (type.element() == ir::ElementType::Bool)
        ir::store_element_int(type.element(), static_cast<i64>(next() & 1), to);
      else if (ir::is_integer(type.element()))
        ir::store_element_int(type.element(), integer(type), to);
      else
        ir::store_element(type.element(), uniform(), to);
    }
    return t;
  }

private:
  i64 integer(ir::Type type) {
    const ir::Quantization *q = type.quant();
    if (!q || q->zero_points.empty())
      return static_cast<i64>(next() & 7);
    const quant::Range range = quant::range_of(type.element()).value_or(quant::Range{});
    const i64 step = static_cast<i64>(next() % 201) - 100;
    return std::clamp(q->zero_points[0] + step, range.min, range.max);
  }
  i64 extent(ir::SymInt d) const {
    const ir::SymTable &sym = graph_.context().sym();
    const auto value = sym.evaluate(d, [&](ir::SymInt symbol) -> std::optional<i64> {
      const ir::SymRange range = sym.range(symbol);
      return std::max<i64>({1, range.min, std::min<i64>(2, range.max)});
    });
    return value.value_or(1);
  }
  u64 next() { // splitmix64
    u64 z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-52 - 1.0; }

  const ir::Graph &graph_;
  u64 state_;
};

} // namespace

Result<NamedTensors> read_inputs(std::span<const std::string> paths) {
  NamedTensors out;
  for (size_t i = 0; i < paths.size(); ++i) {
    auto read = eval::read_numpy(paths[i]);
    if (!read)
      return tl::unexpected(std::move(read.error()));
    // A .npy has no name of its own: it stands for the input at its position.
    for (auto &[name, tensor] : *read)
      out.emplace_back(name.empty() ? "in" + std::to_string(i) : name, std::move(tensor));
  }
  return out;
}

eval::Tensor fit_input(const eval::Tensor &given, const ir::InputInfo &input) {
  const ir::Type type = input.value->type();
  if (type.is_tensor() && type.quant() && ir::is_float(given.element()))
    if (auto stored = eval::quantize(given, type.element(), *type.quant()))
      return *stored;
  if (!type.is_tensor() || type.element() == given.element() || !ir::is_float(type.element()) ||
      !ir::is_float(given.element()))
    return given;
  eval::Tensor out = eval::Tensor::zeros(type.element(), given.shape());
  const auto item = static_cast<i64>(out.item_bytes());
  for (i64 i = 0; i < out.num_elements(); ++i)
    ir::store_element(type.element(), given.at(i), out.mutable_data() + i * item);
  return out;
}

Result<std::vector<eval::Tensor>> gather_inputs(const ir::Graph &graph, const NamedTensors &arrays,
                                                u64 seed, Diagnostics &diagnostics) {
  const auto find = [&](const std::string &name) -> const eval::Tensor * {
    for (const auto &[key, tensor] : arrays)
      if (key == name)
        return &tensor;
    return nullptr;
  };
  InputMaker maker(graph, seed);
  std::vector<eval::Tensor> out;
  size_t position = 0; // among all inputs of the caller, literals included
  for (const ir::InputInfo &input : graph.inputs()) {
    const std::string by_position = "in" + std::to_string(position++);
    if (!input.value)
      continue;
    if (arrays.empty()) {
      auto made = maker.make(input);
      if (!made)
        return tl::unexpected(std::move(made.error()));
      out.push_back(std::move(*made));
      continue;
    }
    const eval::Tensor *given = find(input.name);
    if (!given)
      given = find(by_position);
    if (!given)
      return fail(ErrorKind::Usage, "run.input.missing",
                  "no array named '" + input.name + "' or '" + by_position + "'", {},
                  "`chute inspect` lists the model's inputs");
    out.push_back(fit_input(*given, input));
    if (out.back().element() == given->element() || (input.value->type().quant()))
      continue;
    Diagnostic d;
    d.severity = Severity::Note;
    d.kind = ErrorKind::None;
    d.code = "run.input.converted";
    d.object = input.name;
    d.message = "converted from " + std::string(ir::element_type_name(given->element())) + " to " +
                std::string(ir::element_type_name(out.back().element()));
    diagnostics.add(std::move(d));
  }
  return out;
}

} // namespace chute::toolkit

#include "convert/interface.h"

#include <fmt/format.h>

namespace chute::convert {

namespace {

using ir::ElementType;

std::string dtype_name(ElementType e) {
  switch (e) {
  case ElementType::F16: return "float16";
  case ElementType::BF16: return "bfloat16";
  case ElementType::F32: return "float32";
  case ElementType::F64: return "float64";
  case ElementType::C64: return "complex64";
  case ElementType::C128: return "complex128";
  case ElementType::F8E4M3FN: return "float8_e4m3fn";
  case ElementType::F8E5M2: return "float8_e5m2";
  default: break;
  }
  if (!ir::is_integer(e))
    return std::string(ir::element_type_name(e));
  return (ir::is_signed(e) ? "int" : "uint") + std::to_string(ir::element_bits(e));
}

InterfaceTensor describe(const std::string &name, ir::Type type) {
  InterfaceTensor t;
  t.name = name;
  if (!type.is_tensor())
    return t;
  t.dtype = dtype_name(type.element());
  for (ir::SymInt d : type.shape())
    t.shape.push_back(d.is_symbolic() ? -1 : d.value());
  const ir::Quantization *q = type.quant();
  if (q && q->kind == ir::QuantKind::PerTensor && !q->scales.empty()) {
    t.scale = q->scales[0];
    t.zero_point = q->zero_points.empty() ? 0 : q->zero_points[0];
  }
  return t;
}

std::string to_json(const InterfaceTensor &t) {
  return fmt::format("{{\"name\":{},\"dtype\":{},\"shape\":[{}],\"scale\":{},\"zero_point\":{}}}",
                     json_quote(t.name), json_quote(t.dtype), fmt::join(t.shape, ","),
                     t.scale ? fmt::format("{}", *t.scale) : "null",
                     t.zero_point ? fmt::format("{}", *t.zero_point) : "null");
}

std::string list_json(const std::vector<InterfaceTensor> &tensors) {
  std::string text = "[";
  for (const InterfaceTensor &t : tensors)
    text += (text.size() > 1 ? "," : "") + to_json(t);
  return text + "]";
}

} // namespace

void fill_interface(const ir::Graph &graph, ConvertReport &report) {
  for (const ir::InputInfo &in : graph.inputs())
    if (in.value)
      report.inputs.push_back(describe(in.name, in.value->type()));
  const ir::Op *ret = graph.return_op();
  for (const ir::OutputInfo &out : graph.outputs())
    if (ret && out.operand >= 0)
      report.outputs.push_back(
          describe(out.name, ret->operand(static_cast<u32>(out.operand))->type()));
}

std::string report_json(const ConvertReport &report) {
  std::string text = "{\"interface\":{\"inputs\":" + list_json(report.inputs) +
                     ",\"outputs\":" + list_json(report.outputs) + "}";
  if (!report.layers.empty()) {
    text += ",\"accelerator\":{\"totals\":{";
    for (size_t i = 0; i < report.accelerator_totals.size(); ++i)
      text += fmt::format("{}{}:{}", i ? "," : "", json_quote(report.accelerator_totals[i].first),
                          report.accelerator_totals[i].second);
    text += "},\"layers\":[";
    for (size_t i = 0; i < report.layers.size(); ++i) {
      const AcceleratorLayer &l = report.layers[i];
      text += fmt::format("{}{{\"name\":{},\"operator\":{},\"target\":{},\"module\":{},"
                          "\"source\":{},\"cycles\":{},\"macs\":{},\"utilization\":{}}}",
                          i ? "," : "", json_quote(l.name), json_quote(l.original),
                          json_quote(l.target), json_quote(l.module_path),
                          json_quote(l.source_line), l.cycles, l.macs, l.utilization);
    }
    text += "]}";
  }
  return text + "}\n";
}

} // namespace chute::convert

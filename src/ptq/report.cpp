#include "ptq/report.h"

#include "support/diag.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace chute::ptq {

namespace {

constexpr size_t kWorst = 10; ///< layers that the text names

template <class... Args>
std::string format(const char *how, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), how, args...);
  return buffer;
}

std::string decibels(double sqnr) {
  return std::isnan(sqnr) ? "-" : std::isinf(sqnr) ? "exact" : format("%.1f dB", sqnr);
}
std::string json_decibels(double sqnr) {
  return std::isnan(sqnr)               ? "null"
         : std::isinf(sqnr) && sqnr > 0 ? "\"exact\""
         : std::isinf(sqnr)             ? "null"
                                        : format("%.3f", sqnr);
}

std::string_view observer_name(ObserverKind kind) {
  switch (kind) {
  case ObserverKind::MovingAverage: return "moving-average";
  case ObserverKind::Percentile: return "percentile";
  case ObserverKind::Mse: return "mse";
  default: return "minmax";
  }
}

std::string where(const std::string &name, const std::string &module) {
  return module.empty() ? name : name + " in " + module;
}

} // namespace

std::string report_text(const Report &r, const Options &options, const Sizes &sizes) {
  std::string out =
      format("%.*s, %zu sample%s, %zu operators quantized, %zu in float\n",
             static_cast<int>(options.plan.scheme->name.size()), options.plan.scheme->name.data(),
             r.samples, r.samples == 1 ? "" : "s", r.layers.size(), r.kept.size());
  for (const auto &[name, sqnr] : r.outputs)
    out += "output " + name + ": " + decibels(sqnr) + "\n";
  out += format("file: %llu bytes, %.3f of the float model's %llu\n",
                static_cast<unsigned long long>(sizes.bytes),
                static_cast<double>(sizes.bytes) /
                    static_cast<double>(std::max<u64>(sizes.float_bytes, 1)),
                static_cast<unsigned long long>(sizes.float_bytes));
  if (r.adjusted)
    out += "weights: " + std::to_string(r.adjusted) + " rounded by GPTQ\n";
  else if (!r.without_gptq.empty())
    out += "weights: rounded to nearest (" + r.without_gptq + ")\n";
  std::vector<const Layer *> worst;
  for (const Layer &l : r.layers)
    if (std::isfinite(l.sqnr))
      worst.push_back(&l);
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Layer *a, const Layer *b) { return a->sqnr < b->sqnr; });
  if (worst.size() > kWorst)
    worst.resize(kWorst);
  if (!worst.empty())
    out += "least exact (signal to quantization noise against the float model):\n";
  for (const Layer *l : worst)
    out += format("  %8s  %-24s ", decibels(l->sqnr).c_str(), l->op.c_str()) +
           where(l->name, l->module) + "\n";
  // By reason, each with its operators.
  std::map<std::string, std::vector<const Kept *>> reasons;
  for (const Kept &k : r.kept)
    reasons[k.reason].push_back(&k);
  if (!reasons.empty())
    out += "in float:\n";
  for (const auto &[reason, kept] : reasons) {
    out += "  " + reason + " (" + std::to_string(kept.size()) + "):\n";
    for (size_t i = 0; i < kept.size() && i < kWorst; ++i)
      out +=
          format("    %-24s ", kept[i]->op.c_str()) + where(kept[i]->name, kept[i]->module) + "\n";
    if (kept.size() > kWorst)
      out += "    and " + std::to_string(kept.size() - kWorst) + " more (--report lists all)\n";
  }
  return out;
}

std::string report_json(const Report &r, const Options &options, const Sizes &sizes) {
  std::string out =
      "{\"scheme\":" + json_quote(options.plan.scheme->name) +
      ",\"observer\":" + json_quote(observer_name(options.observer.kind)) +
      ",\"io_dtype\":" + (options.io == IoType::Quantized ? "\"quantized\"" : "\"float\"") +
      ",\"samples\":" + std::to_string(r.samples) +
      ",\"float_bytes\":" + std::to_string(sizes.float_bytes) +
      ",\"bytes\":" + std::to_string(sizes.bytes) +
      ",\"quantize_ops\":" + std::to_string(r.quantize_ops) +
      ",\"dequantize_ops\":" + std::to_string(r.dequantize_ops) + ",\"weights\":\"" +
      (r.adjusted ? "gptq" : "nearest") + "\",\"adjusted\":" + std::to_string(r.adjusted) +
      ",\n\"outputs\":[";
  for (size_t i = 0; i < r.outputs.size(); ++i)
    out += std::string(i ? "," : "") + "{\"name\":" + json_quote(r.outputs[i].first) +
           ",\"sqnr_db\":" + json_decibels(r.outputs[i].second) + "}";
  out += "],\n\"layers\":[";
  for (size_t i = 0; i < r.layers.size(); ++i) {
    const Layer &l = r.layers[i];
    out += std::string(i ? ",\n " : "\n ") + "{\"name\":" + json_quote(l.name) +
           ",\"op\":" + json_quote(l.op) + ",\"module\":" + json_quote(l.module) +
           ",\"type\":" + json_quote(l.type) +
           format(",\"scale\":%.9g", static_cast<double>(l.scale)) +
           ",\"zero_point\":" + std::to_string(l.zero_point);
    if (!l.seen.empty())
      out += format(",\"min\":%.9g,\"max\":%.9g", static_cast<double>(l.seen.lo),
                    static_cast<double>(l.seen.hi));
    out += ",\"sqnr_db\":" + json_decibels(l.sqnr) + "}";
  }
  out += "],\n\"float\":[";
  for (size_t i = 0; i < r.kept.size(); ++i) {
    const Kept &k = r.kept[i];
    out += std::string(i ? ",\n " : "\n ") + "{\"name\":" + json_quote(k.name) +
           ",\"op\":" + json_quote(k.op) + ",\"module\":" + json_quote(k.module) +
           ",\"reason\":" + json_quote(k.reason) + "}";
  }
  out += "]}\n";
  return out;
}

} // namespace chute::ptq

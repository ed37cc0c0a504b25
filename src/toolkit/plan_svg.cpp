#include "toolkit/plan.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace chute::toolkit {

namespace {

constexpr double kWidth = 1200, kHeight = 560, kLeft = 90, kTop = 50, kBottom = 50, kRight = 20;
constexpr size_t kColumns = 1000; ///< points of the line

std::string escape(const std::string &text) {
  std::string out;
  for (char c : text) {
    switch (c) {
    case '&': out += "&amp;"; break;
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '"': out += "&quot;"; break;
    default:
      // Control characters are not allowed in XML at all; bytes beyond ASCII may not be UTF-8.
      out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E ? '?' : c;
    }
  }
  return out;
}

std::string bytes_text(double bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), bytes < 10 && unit ? "%.2f %s" : "%.0f %s", bytes,
                kUnits[unit]);
  return text;
}

/// The same colour for the same operator, in every picture.
int hue(const std::string &op) {
  u32 h = 2166136261u;
  for (char c : op)
    h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int>(h % 360);
}

class Picture {
public:
  Picture(const PlanReport &report, const std::string &title, size_t most)
      : report_(report), title_(title), most_(most) {
    steps_ = static_cast<double>(std::max<size_t>(report.steps.size(), 1));
    bytes_ = static_cast<double>(std::max<u64>({report.arena, report.lower_bound, 1}));
  }

  std::string draw() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
        "fill=\"#fff\"/>\n",
        kWidth, kHeight);
    out_ += "<text x=\"90\" y=\"20\" font-size=\"15\">" + escape(title_) + "</text>\n";
    add("<text x=\"90\" y=\"38\" fill=\"#555\">arena %s, lower bound %s at step %llu, %zu tensors, "
        "%zu operators</text>\n",
        bytes_text(static_cast<double>(report_.arena)).c_str(),
        bytes_text(static_cast<double>(report_.lower_bound)).c_str(),
        static_cast<unsigned long long>(report_.peak_step), report_.tensors.size(),
        report_.steps.size());
    boxes();
    line();
    axes();
    out_ += "</svg>\n";
    return std::move(out_);
  }

private:
  template <class... Args>
  void add(const char *format, Args... args) {
    char text[512];
    std::snprintf(text, sizeof(text), format, args...);
    out_ += text;
  }
  double x(double step) const { return kLeft + step / steps_ * (kWidth - kLeft - kRight); }
  double y(double bytes) const {
    return kHeight - kBottom - bytes / bytes_ * (kHeight - kTop - kBottom);
  }

  void boxes() {
    std::vector<u32> order(report_.tensors.size());
    std::iota(order.begin(), order.end(), 0);
    const auto area = [&](u32 i) {
      const PlanTensor &t = report_.tensors[i];
      return static_cast<double>(t.aligned) * static_cast<double>(t.last - t.first + 1);
    };
    std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return area(a) > area(b); });
    if (order.size() > most_)
      order.resize(most_);
    std::sort(order.begin(), order.end());
    for (u32 i : order) {
      const PlanTensor &t = report_.tensors[i];
      if (t.aligned == 0)
        continue;
      const double left = x(static_cast<double>(t.first));
      const double right = x(static_cast<double>(t.last) + 1);
      const double top = y(static_cast<double>(t.offset + t.aligned));
      const double bottom = y(static_cast<double>(t.offset));
      add("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%d,55%%,72%%)\" "
          "stroke=\"#fff\" stroke-width=\"0.4\"><title>",
          left, top, std::max(right - left, 0.3), std::max(bottom - top, 0.3), hue(t.op));
      out_ += escape(t.name) + " (" + escape(t.op) + "), " +
              bytes_text(static_cast<double>(t.bytes)) + " at offset " + std::to_string(t.offset) +
              ", steps " + std::to_string(t.first) + " to " + std::to_string(t.last) +
              (t.aliases ? ", " + std::to_string(t.aliases) + " aliases" : "") +
              "</title></rect>\n";
    }
  }

  /// The bytes in use; of steps that share a column, the most.
  void line() {
    const size_t n = report_.live.size();
    if (n == 0)
      return;
    const size_t columns = std::min(n, kColumns);
    out_ += "<polyline fill=\"none\" stroke=\"#222\" stroke-width=\"1.2\" points=\"";
    for (size_t c = 0; c < columns; ++c) {
      const size_t from = c * n / columns, to = std::max(from + 1, (c + 1) * n / columns);
      const u64 most = *std::max_element(report_.live.begin() + static_cast<i64>(from),
                                         report_.live.begin() + static_cast<i64>(to));
      const double height = y(static_cast<double>(most));
      add("%.2f,%.2f %.2f,%.2f ", x(static_cast<double>(from)), height, x(static_cast<double>(to)),
          height);
    }
    out_ += "\"/>\n";
  }

  void axes() {
    for (int i = 0; i <= 4; ++i) {
      const double b = bytes_ * i / 4;
      add("<line x1=\"%.0f\" y1=\"%.2f\" x2=\"%.0f\" y2=\"%.2f\" stroke=\"#ccc\" "
          "stroke-width=\"0.5\"/>\n",
          kLeft, y(b), kWidth - kRight, y(b));
      add("<text x=\"%.0f\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n", kLeft - 6, y(b) + 4,
          bytes_text(b).c_str());
      const double s = steps_ * i / 4;
      add("<text x=\"%.2f\" y=\"%.0f\" text-anchor=\"middle\">%.0f</text>\n", x(s),
          kHeight - kBottom + 18, s);
    }
    add("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">operators in execution order</text>\n",
        (kLeft + kWidth - kRight) / 2, kHeight - 12);
  }

  const PlanReport &report_;
  const std::string &title_;
  size_t most_;
  double steps_ = 1;
  double bytes_ = 1;
  std::string out_;
};

} // namespace

std::string plan_svg(const PlanReport &report, const std::string &title, size_t most) {
  return Picture(report, title, most).draw();
}

} // namespace chute::toolkit

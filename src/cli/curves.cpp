#include "curves.h"

#include "process.h"
#include "table.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tandem::cli {

namespace {

constexpr double width = 960, height = 540, left = 80, right = 930, top = 60, bottom = 470;
// so few that each gets a dot: a line of one point would not be seen
constexpr size_t few_points = 40;

/// A range of values that ends at round numbers, and the distance of round numbers inside it.
struct Axis {
  double low, high, step;
  double pixels_from, pixels_to;

  double place(double value) const {
    return pixels_from + (value - low) / (high - low) * (pixels_to - pixels_from);
  }
  int digits() const { return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))); }
};

/// The distance among 1, 2 and 5 times a power of ten that divides a range into at most `parts`.
double round_step(double range, int parts) {
  const double power = std::pow(10.0, std::floor(std::log10(range / parts)));
  for (double factor : {1.0, 2.0, 5.0})
    if (range / (factor * power) <= parts) return factor * power;
  return 10 * power;
}

Axis make_axis(double low, double high, int parts, double least_step, double pixels_from, double pixels_to) {
  if (!(high > low)) low -= 0.5, high += 0.5;
  const double step = std::max(least_step, round_step(high - low, parts));
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step, pixels_from, pixels_to};
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

std::string text_at(double x, double y, const char* anchor, int size, const std::string& text,
                    const std::string& more = {}) {
  std::ostringstream out;
  out << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" font-size=\"" << size
      << "\" " << more << ">" << escaped(text) << "</text>\n";
  return out.str();
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  std::ostringstream out;
  out << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\""
      << colour << "\"/>\n";
  return out.str();
}

std::string grid(const Axis& x, const Axis& y) {
  std::string svg;
  for (int i = 0; y.low + i * y.step <= y.high + y.step / 2; ++i) {
    const double value = y.low + i * y.step, at = y.place(value);
    svg += line(left, at, right, at, "#e3e3e3") +
           text_at(left - 10, at + 5, "end", 15, fixed(value, y.digits()));
  }
  for (int i = 0; x.low + i * x.step <= x.high + x.step / 2; ++i) {
    const double value = x.low + i * x.step, at = x.place(value);
    svg += line(at, bottom, at, bottom + 6, "#555555") +
           text_at(at, bottom + 24, "middle", 15, fixed(value, x.digits()));
  }
  return svg + line(left, bottom, right, bottom, "#555555") + line(left, top, left, bottom, "#555555");
}

std::string draw(const Curve& curve, const Axis& x, const Axis& y) {
  std::ostringstream points, dots;
  for (size_t i = 0; i < curve.values.size(); ++i) {
    if (!std::isfinite(curve.values[i])) continue;
    const double px = x.place(curve.place(i)), py = y.place(curve.values[i]);
    points << px << "," << py << " ";
    if (curve.values.size() <= few_points)
      dots << "<circle cx=\"" << px << "\" cy=\"" << py << "\" r=\"" << curve.width + 1 << "\" fill=\""
           << curve.colour << "\"/>\n";
  }
  return "<polyline fill=\"none\" stroke-linejoin=\"round\" stroke=\"" + curve.colour + "\" stroke-width=\"" +
         fixed(curve.width, 1) + "\" points=\"" + points.str() + "\"/>\n" + dots.str();
}

std::string legend(const std::vector<Curve>& curves) {
  std::string svg;
  double y = top + 24;
  for (const Curve& curve : curves) {
    svg += "<line x1=\"" + fixed(right - 230, 0) + "\" y1=\"" + fixed(y, 0) + "\" x2=\"" +
           fixed(right - 180, 0) + "\" y2=\"" + fixed(y, 0) + "\" stroke=\"" + curve.colour +
           "\" stroke-width=\"" + fixed(curve.width, 1) + "\"/>\n" +
           text_at(right - 168, y + 5, "start", 16, curve.label);
    y += 26;
  }
  return svg;
}

}  // namespace

std::string to_svg(const Chart& chart) {
  double low = INFINITY, high = -INFINITY, last = 1;
  bool counts = true;
  for (const Curve& curve : chart.curves) {
    counts = counts && curve.places.empty();
    for (size_t i = 0; i < curve.values.size(); ++i) last = std::max(last, curve.place(i));
    for (double value : curve.values)
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
  if (low > high) low = 0, high = 1;
  const Axis x = make_axis(0, last, 10, counts ? 1 : 0, left, right),
             y = make_axis(low, high, 7, 0, bottom, top);
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" viewBox=\"0 0 " << width << " " << height
      << "\" font-family=\"DejaVu Sans, Helvetica, sans-serif\" fill=\"#222222\">\n<rect width=\"100%\" "
         "height=\"100%\" fill=\"white\"/>\n"
      << text_at((left + right) / 2, 34, "middle", 20, chart.title) << grid(x, y);
  for (const Curve& curve : chart.curves) svg << draw(curve, x, y);
  svg << legend(chart.curves) << text_at((left + right) / 2, height - 16, "middle", 17, chart.x_label)
      << text_at(24, (top + bottom) / 2, "middle", 17, chart.y_label,
                 "transform=\"rotate(-90 24 " + fixed((top + bottom) / 2, 0) + ")\"")
      << "</svg>\n";
  return svg.str();
}

std::string convert_to_png(const std::filesystem::path& svg, const std::filesystem::path& png) {
  const int status = run_program({"rsvg-convert", "--output", png.string(), svg.string()}).status;
  if (status == 127) return "no PNG: rsvg-convert was not found (Debian package librsvg2-bin)";
  return status == 0 ? "" : "no PNG: rsvg-convert ended with status " + std::to_string(status);
}

}  // namespace tandem::cli

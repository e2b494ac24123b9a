/// Line charts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::cli {

/// One line of a chart. Drawn in the order given, so a thick light line stays visible under a thin dark one
/// that takes the same way.
struct Curve {
  std::string label, colour;
  double width;
  std::vector<double> values;
  std::vector<double> places = {};  ///< the x of each value; empty: 1, 2, 3, ...
  double place(size_t i) const { return places.empty() ? double(i + 1) : places[i]; }
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
};

std::string to_svg(const Chart& chart);

/// Turns an SVG file into a PNG beside it with rsvg-convert; an empty string on success, else what to do
/// about the failure.
std::string convert_to_png(const std::filesystem::path& svg, const std::filesystem::path& png);

}  // namespace tandem::cli

#include "table.h"

#include <algorithm>
#include <cstdio>

namespace tandem::cli {

std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string padding(widths[i] - rows[r][i].size(), ' ');
      if (i > 0)
        text += "  " + padding + rows[r][i];
      else
        text += rows[r][i] + padding;
    }
    text += "\n";
    if (r > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) text += (i > 0 ? "  " : "") + std::string(widths[i], '-');
    text += "\n";
  }
  return text;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string factor(double value) { return fixed(value, 2) + "x"; }

std::string kilobytes(double bytes) { return fixed(bytes / 1e3, 1) + " kB"; }

std::string megabytes(double bytes) { return fixed(bytes / 1e6, 2) + " MB"; }

std::string duration(double seconds) {
  return seconds < 1 ? fixed(seconds * 1e3, 2) + " ms" : fixed(seconds, 2) + " s";
}

}  // namespace tandem::cli

/// Text tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::cli {

using Row = std::vector<std::string>;

/// The rows under one another, the first one underlined; the first column flush left, the others flush right.
std::string table(const std::vector<Row>& rows);

std::string fixed(double value, int digits);
/// "1.50x"
std::string factor(double value);
/// "12.3 kB"
std::string kilobytes(double bytes);
/// "12.3 MB"
std::string megabytes(double bytes);
/// "3.40 ms" or "1.25 s"
std::string duration(double seconds);

}  // namespace tandem::cli

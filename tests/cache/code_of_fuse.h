/// What `fuse` keeps of a graph, taken apart as one would who wants to be believed.
#pragma once

#include <gtest/gtest.h>

#include "backends/machine.h"
#include "base/sha256.h"

namespace tandem::test {

using ChangeOfCode = std::function<std::string(const std::string& code)>;

/// The same with the code of each kernel changed.
inline std::string with_code_changed(const std::string& payload, const ChangeOfCode& change) {
  ByteReader reader(payload);
  ByteWriter writer;
  auto write_nodes = [&](const std::vector<int32_t>& nodes) {
    writer.list(nodes, [&](int32_t node) { writer.number(uint64_t(node)); });
  };
  writer.list(read_members(reader), [&](const loops::Members& members) {
    write_nodes(members.own);
    write_nodes(members.borrowed);
  });
  std::vector<uint64_t> places;
  reader.list(1, [&] { places.push_back(reader.number()); });
  writer.list(places, [&](uint64_t place) { writer.number(place); });
  std::vector<std::string> codes;
  reader.list(1, [&] { codes.push_back(change(std::string(reader.text()))); });
  writer.list(codes, [&](const std::string& code) { writer.text(code); });
  EXPECT_FALSE(codes.empty());
  return writer.take();
}

/// With the SHA-256 of the bytes before it in the place of the last ones: that of a kernel's code, or of a
/// file.
inline std::string with_right_checksum(std::string bytes) {
  constexpr size_t checksum_size = 32;
  bytes.resize(std::max(bytes.size(), checksum_size) - checksum_size);
  return bytes + sha256_bytes(bytes);
}

}  // namespace tandem::test

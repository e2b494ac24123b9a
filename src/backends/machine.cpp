#include "backends/machine.h"

#include <algorithm>
#include <map>

namespace tandem {

std::vector<loops::Kernel> kernels_of(const FusedGraph& fused) {
  std::vector<loops::Kernel> kernels;
  for (const loops::Fused& group : fused.groups)
    for (const loops::Launch& launch : group.launches) kernels.push_back(launch.kernel);
  return kernels;
}

std::vector<uint8_t> bytes_of(const FusedGraph& fused, const Machine& machine) {
  ByteWriter writer;
  auto write_nodes = [&](const std::vector<int32_t>& nodes) {
    writer.list(nodes, [&](int32_t node) { writer.number(uint64_t(node)); });
  };
  writer.list(fused.members, [&](const loops::Members& members) {
    write_nodes(members.own);
    write_nodes(members.borrowed);
  });
  std::map<const native::MachineCode*, size_t> places;
  std::vector<const native::MachineCode*> codes;
  for (const native::CodePointer& code : machine)
    if (places.try_emplace(code.get(), codes.size()).second) codes.push_back(code.get());
  writer.list(machine, [&](const native::CodePointer& code) { writer.number(places.at(code.get())); });
  writer.list(codes, [&](const native::MachineCode* code) {
    writer.text({reinterpret_cast<const char*>(code->bytes().data()), code->bytes().size()});
  });
  const std::string bytes = writer.take();
  return {bytes.begin(), bytes.end()};
}

namespace {

std::vector<int32_t> read_nodes(ByteReader& reader) {
  constexpr uint64_t too_many = uint64_t(1) << 31;
  std::vector<int32_t> nodes;
  reader.list(1, [&] { nodes.push_back(int32_t(reader.number_below(too_many, "node"))); });
  if (!std::is_sorted(nodes.begin(), nodes.end(), std::less_equal<>()))
    reader.refuse("nodes are not in order");
  return nodes;
}

}  // namespace

std::vector<loops::Members> read_members(ByteReader& reader) {
  std::vector<loops::Members> all;
  reader.list(2, [&] {
    std::vector<int32_t> own = read_nodes(reader);
    all.push_back({std::move(own), read_nodes(reader)});
  });
  return all;
}

std::optional<Machine> read_machine(ByteReader& reader, const std::vector<loops::Kernel>& kernels) {
  std::vector<size_t> places;
  reader.list(1, [&] { places.push_back(reader.number()); });
  std::vector<std::string_view> texts;
  reader.list(1, [&] { texts.push_back(reader.text()); });
  reader.expect_end();
  if (places.size() != kernels.size()) return std::nullopt;
  std::vector<std::pair<native::CodePointer, const loops::Kernel*>> codes(texts.size());
  Machine machine;
  for (size_t l = 0; l < places.size(); ++l) {
    if (places[l] >= codes.size()) return std::nullopt;
    auto& [code, kernel] = codes[places[l]];
    if (!code) {
      const std::string_view text = texts[places[l]];
      code = native::load_code(kernels[l], {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
      kernel = &kernels[l];
    }
    if (!code || *kernel != kernels[l]) return std::nullopt;
    machine.push_back(code);
  }
  return machine;
}

}  // namespace tandem

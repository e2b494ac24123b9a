#include "partition/computation_keys.h"

#include "graph/bytes.h"
#include "graph/draws.h"
#include "graph/spelling.h"
#include "ops/generator_state.h"

namespace tandem {
namespace {

void spell_pointer(std::string& to, char kind, const void* pointer) {
  spell(to, kind, int64_t(reinterpret_cast<uintptr_t>(pointer)));
}

/// Small ones by what they hold, since folding makes them anew; large ones by where they lie.
void spell_data(std::string& to, const at::Tensor& data) {
  constexpr size_t most_bytes = 64 * 1024;
  if (!data.defined()) return spell(to, 't', -1);
  spell(to, 't', int64_t(data.scalar_type()));
  const bool is_number = data.unsafeGetTensorImpl()->is_wrapped_number();
  spell(to, 'f', is_number | data.is_conj() << 1 | data.is_neg() << 2);
  spell(to, 'k', data.dim());
  for (int64_t size : data.sizes()) spell(to, 'k', size);
  const bool is_small = data.device().is_cpu() && data.nbytes() <= most_bytes;
  if (!is_small) return spell_pointer(to, '@', data.const_data_ptr());
  to += '=';
  to += element_bytes(data);
}

/// A constant of a call that is no plain one.
void spell_other(std::string& to, const c10::IValue& constant) {
  if (constant.isTensor()) return spell_data(to, constant.toTensor());
  if (constant.isGenerator()) return spell_pointer(to, 'g', constant.toGenerator().unsafeGetGeneratorImpl());
  spell_pointer(to, '?', &constant);
}

}  // namespace

std::string ComputationKeys::text_of(const Node& node, const std::vector<uint64_t>& keys) const {
  std::string text = apart_ && node.phase == Phase::Backward ? "B" : "F";
  spell_call(text, node, [&](Value v) { return v ? int64_t(keys[size_t(v.id)]) : -1; }, spell_other);
  if (node.state) spell(text, 'S', int64_t(keys[size_t(node.state.id)]));
  return text;
}

std::vector<uint64_t> ComputationKeys::of(const Joint& joint) {
  const Graph& graph = joint.graph;
  std::vector<uint64_t> keys(graph.value_count(), 0);
  auto key_by = [&](std::initializer_list<std::pair<char, int64_t>> numbers) {
    std::string text;
    for (const auto& [kind, number] : numbers) spell(text, kind, number);
    return key_of(std::move(text));
  };
  std::unordered_map<int32_t, int64_t> returned;  // by storage
  for (size_t i = 0; i < joint.forward_outputs && apart_; ++i)
    if (Value output = graph.outputs()[i]) returned.emplace(graph.meta(output).storage, int64_t(i + 1));
  auto place_among_returned = [&](Value value) {
    auto found = returned.find(graph.meta(value).storage);
    return found == returned.end() ? 0 : found->second;
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    keys[size_t(graph.inputs()[i].id)] = key_by({{'I', int64_t(i)}});
  for (const auto& [value, data] : graph.constants()) {
    std::string text = "C";
    spell_data(text, data);
    keys[size_t(value.id)] = key_of(std::move(text));
  }
  int64_t draws = 0;
  for (const Node& node : graph.nodes()) {
    std::string text = text_of(node, keys);
    if (draws_live(node)) spell(text, '#', ++draws);
    if (reads_generator(node.op)) spell(text, '#', draws);
    const auto call = int64_t(key_of(std::move(text)));
    int64_t result = 0;
    for_each_result(node, [&](Value made) {
      keys[size_t(made.id)] = key_by({{'R', call}, {'r', ++result}, {'o', place_among_returned(made)}});
    });
  }
  return keys;
}

}  // namespace tandem

// Attacks what reads the bytes of the cache, guided by coverage. It needs no corpus: it begins with the
// sample entry of the tests.
#include <cstring>

#include "cache/attack.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace tandem;
using namespace tandem::test;

/// The first byte says what the rest is read as.
constexpr bool (*attacks[])(std::string_view) = {attack_entry, attack_graph, attack_joint};

const std::vector<std::string>& samples() {
  static const std::vector<std::string> samples = {'\0' + cache::encode(sample_entry()),
                                                   '\1' + encode_graph(sample_of_constants()),
                                                   '\2' + cache::pack(sample_joint()).bytes};
  return samples;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const std::string& sample = samples()[seed % samples().size()];
  if (size > 2 || sample.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, sample.data(), sample.size());
  return sample.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) attacks[data[0] % std::size(attacks)]({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}

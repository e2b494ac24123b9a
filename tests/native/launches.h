/// Launches of random kernels, and what is wrong with what they stored.
#pragma once

#include "native/bounds.h"
#include "native/code.h"

#include <gtest/gtest.h>

#include <sstream>

/// Skips a test, with a word, where nothing can be compiled.
#define NEEDS_COMPILER() \
  if (!tandem::native::can_compile()) GTEST_SKIP() << "no LLVM: there is no machine code to look at"

namespace tandem::loops {

using Buffers = std::vector<std::vector<uint8_t>>;

inline std::vector<void*> pointers_to(Buffers& buffers) {
  std::vector<void*> pointers;
  for (auto& buffer : buffers) pointers.push_back(buffer.data());
  return pointers;
}

/// All units, in pieces that end at `ends`.
template <class Run>
Buffers launched(const Case& launch, Run run, std::vector<int64_t> ends = {}) {
  Buffers buffers = launch.buffers;
  const std::vector<void*> pointers = pointers_to(buffers);
  ends.push_back(launch.units());
  int64_t begin = 0;
  for (int64_t end : ends) {
    run(pointers.data(), launch.shape.data(), launch.numbers.data(), begin, end);
    begin = end;
  }
  return buffers;
}

inline std::string to_text(const ValueRange& range) {
  std::ostringstream out;
  out.precision(20);
  out << '[' << range.low << ", " << range.high << ']';
  return out.str();
}

/// What a launch stored, against its bounds.
struct Judgement {
  std::string complaint;
  int64_t known = 0, unknown = 0;

  void look_at(const Case& launch, const Bounds& bounds, const Buffers& results) {
    for (size_t buffer = 0; buffer < results.size(); ++buffer)
      for (size_t i = 0; i < bounds.of_buffer(buffer).size(); ++i)
        look_at(launch, bounds.of_buffer(buffer)[i], results, buffer, i);
  }

 private:
  void look_at(const Case& launch, const Bounds::Element& element, const Buffers& results, size_t buffer,
               size_t place) {
    const Type type = launch.kernel.buffers[buffer].type;
    const auto at = static_cast<int64_t>(place);
    if (!element.stored) {
      const int64_t bytes = bytes_of(type);
      if (std::memcmp(results[buffer].data() + at * bytes, launch.buffers[buffer].data() + at * bytes, bytes))
        complain(launch, buffer, place, "was written, and is not stored to");
      return;
    }
    ++(element.range.known ? known : unknown);
    if (!element.range.known) return;
    const long double value = exactly(read(type, results[buffer].data(), at), type).low;
    if (element.range.is_nan() ? value == value : !element.range.holds(value))
      complain(launch, buffer, place, std::to_string(value) + " is not in " + to_text(element.range));
  }

  void complain(const Case& launch, size_t buffer, size_t place, const std::string& what) {
    if (!complaint.empty()) return;
    std::ostringstream out;
    out << "seed " << launch.seed << ", element " << place << " of buffer " << buffer << ": " << what << "\n"
        << to_string(launch.kernel) << "shape";
    for (int64_t number : launch.shape) out << ' ' << number;
    complaint = out.str();
  }
};

}  // namespace tandem::loops

#include <tandem/contract.h>

#include <sstream>

#include "ops/facts.h"

namespace tandem {
namespace {

constexpr const char* source_names[] = {"fresh", "input", "view of input", "view of output", "none"};

}  // namespace

std::string Contract::to_string() const {
  std::ostringstream out;
  for (const InputRole& input : inputs) {
    out << "input %" << input.value.id << " " << input.name << (input.captured ? ", captured" : "");
    if (input.view_of) out << ", view of input " << *input.view_of;
    out << (input.requires_grad ? ", requires grad" : "");
    if (input.data_written)
      out << (input.write_kept ? ", written in the graph" : ", written back after the call")
          << (input.write_recorded ? " under autograd" : "");
    if (input.metadata_written) out << ", sizes or strides written";
    if (input.starts_requiring_grad) out << ", starts to require grad";
    out << "\n";
  }
  for (const OutputRole& output : outputs) {
    out << "output %" << output.value.id << " " << source_names[size_t(output.source)];
    if (output.source != OutputSource::None) out << " " << output.base;
    for (const ViewStep& step : output.steps) out << " " << full_name(step.op);
    out << (output.requires_grad ? ", requires grad" : "") << "\n";
  }
  out << "tangents of";
  for (Value tangent : tangents) out << " %" << tangent.id;
  out << "\n";
  return out.str();
}

}  // namespace tandem

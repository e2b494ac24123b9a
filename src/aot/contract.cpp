#include <tandem/contract.h>

#include <sstream>

namespace tandem {
namespace {

constexpr const char* source_names[] = {"fresh", "input", "view of input", "view of output", "none"};

}  // namespace

std::string Contract::to_string() const {
  std::ostringstream out;
  for (const Input& input : inputs) {
    out << "input %" << input.value.id << " " << input.name
        << (input.source == InputSource::Capture ? ", captured" : "");
    if (input.view_of) out << ", view of input " << *input.view_of;
    out << (input.requires_grad ? ", requires grad" : "");
    if (input.write != InputWrite::None)
      out << (input.write == InputWrite::InGraph ? ", written in the graph" : ", written back after the call")
          << (input.recorded ? " under autograd" : "");
    if (input.reshaped) out << ", sizes or strides written";
    if (input.starts_requiring_grad) out << ", starts to require grad";
    out << "\n";
  }
  for (const Output& output : outputs) {
    out << "output %" << output.value.id << " " << source_names[size_t(output.source)];
    if (output.source != OutputSource::None) out << " " << output.base;
    for (const std::string& view : output.views) out << " " << view;
    out << (output.requires_grad ? ", requires grad" : "") << "\n";
  }
  out << "tangents of";
  for (Value tangent : tangents) out << " %" << tangent.id;
  out << "\n";
  return out.str();
}

}  // namespace tandem

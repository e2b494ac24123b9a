#include "callable.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "base/counters.h"
#include "base/log.h"
#include "trace/tracer.h"
#include "trace/watcher.h"

namespace tandem::python {

PythonCallable::PythonCallable(py::object original, py::list roots, Options options)
    : original_{std::move(original), std::move(roots), options.must_compile}, options_(std::move(options)) {
  // Says at once what is wrong with the options.
  detail::make_function([](const Tensors&) { return detail::Returned(); }, options_);
}

py::object PythonCallable::call(const py::args& args, const py::kwargs& kwargs) {
  // Inside another trace a compiled function is the function that it was made of.
  if (Tracer::current() || Watcher::current()) return original_.function(*args, **kwargs);
  if (const std::string reason = why_not(); !reason.empty()) return leave_to_original(reason, args, kwargs);
  Writer writer(interned_);
  write(writer, args, kwargs);
  if (!writer.eager_reason.empty()) return leave_to_original(writer.eager_reason, args, kwargs);
  const Variant* variant = find(writer);
  if (!variant && !is_worth_compiling(writer)) return run_uncompiled(writer, args, kwargs);
  if (!variant) variant = add(writer, args, kwargs);
  const auto function = variant->function;  // other threads may drop the variant
  PythonCall running(original_, args, kwargs, writer, variant->reads);
  return running.finish(run_without_gil([&] { return detail::call(*function, writer.tensors); }));
}

py::object PythonCallable::leave_to_original(const std::string& reason, const py::args& args,
                                             const py::kwargs& kwargs) {
  count("ran_uncompiled");
  log("compile", options_.name + ": runs as it is: " + reason);
  return original_.function(*args, **kwargs);
}

Explanation PythonCallable::explain(const py::args& args, const py::kwargs& kwargs) {
  Explanation reason;
  reason.eager_reason = why_not();
  if (!reason.eager_reason.empty()) return reason;
  Writer writer(interned_);
  write(writer, args, kwargs);
  reason.eager_reason = writer.eager_reason;
  if (!reason.eager_reason.empty()) return reason;
  const Variant* variant = find(writer);
  if (!variant) variant = add(writer, args, kwargs);
  const auto function = variant->function;
  PythonCall running(original_, args, kwargs, writer, variant->reads);
  return run_without_gil([&] { return detail::explain(*function, writer.tensors); });
}

bool PythonCallable::knows(const py::args& args, const py::kwargs& kwargs) {
  Writer writer(interned_);
  write(writer, args, kwargs);
  return writer.eager_reason.empty() && find(writer) != nullptr;
}

/// Modes see every operator of a program, and so must be given the program itself.
std::string PythonCallable::why_not() const {
  if (c10::impl::TorchDispatchModeTLS::any_modes_set()) return "a torch dispatch mode is active";
  if (at::impl::PythonTorchFunctionTLS::stack_len() > 0) return "a torch function mode is active";
  return {};
}

void PythonCallable::write(Writer& writer, const py::args& args, const py::kwargs& kwargs) {
  writer.write(args.ptr());
  writer.write(kwargs.ptr());
}

const PythonCallable::Variant* PythonCallable::last(const Writer& writer) const {
  auto found = by_key_.find(writer.key);
  return found == by_key_.end() ? nullptr : &*found->second.back();
}

const PythonCallable::Variant* PythonCallable::find(const Writer& writer) {
  auto found = by_key_.find(writer.key);
  if (found == by_key_.end()) return nullptr;
  auto& candidates = found->second;
  for (size_t i = candidates.size(); i-- > 0;) {
    if (!candidates[i]->reads->hold()) continue;
    std::rotate(candidates.begin() + std::ptrdiff_t(i), candidates.begin() + std::ptrdiff_t(i) + 1,
                candidates.end());
    variants_.splice(variants_.begin(), variants_, candidates.back());
    ++candidates.back()->calls;
    return &*candidates.back();
  }
  for (auto variant : std::vector(candidates)) {
    if (!variant->reads->are_gone()) continue;
    died_unpaid_ += variant->calls < Novelty::pays_after;
    erase(variant);
  }
  return nullptr;
}

void PythonCallable::erase(Variants::iterator variant) {
  const auto found = by_key_.find(variant->key);
  std::erase(found->second, variant);
  if (found->second.empty()) by_key_.erase(found);
  variants_.erase(variant);
}

size_t PythonCallable::hash(const Writer& writer) {
  const Variant* variant = last(writer);
  return std::hash<std::string>()(writer.key) ^ (variant ? variant->reads->fingerprint() : 0);
}

bool PythonCallable::is_worth_compiling(const Writer& writer) {
  if (options_.must_compile) return true;
  const auto unpaid = std::count_if(variants_.begin(), variants_.end(), [](const Variant& variant) {
    return variant.calls < Novelty::pays_after;
  });
  return novelty_.is_worth_compiling(hash(writer), died_unpaid_ + size_t(unpaid));
}

py::object PythonCallable::run_uncompiled(const Writer& writer, const py::args& args,
                                          const py::kwargs& kwargs) {
  constexpr size_t many = 32;
  count("ran_uncompiled");
  if (++uncompiled_calls_ == many)
    warn(options_.name + ": its calls keep running uncompiled, since " + what_changed(writer, args, kwargs) +
         " is another at most of them; a tensor in its place would not be");
  last_uncompiled_ = writer.key;
  return original_.function(*args, **kwargs);
}

std::string PythonCallable::what_changed(const Writer& writer, const py::args& args,
                                         const py::kwargs& kwargs) {
  std::vector<std::pair<size_t, std::string>> labels;
  Writer labelled(interned_);
  labelled.labels = &labels;
  py::list parameters =
      py::module_::import("tandem._signature").attr("parameter_names")(original_.function, args.size());
  Py_ssize_t size = PyTuple_GET_SIZE(args.ptr());
  labelled.write_simple('U', &size, sizeof size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    labelled.label("argument " + std::string(py::str(parameters[size_t(i)])));
    labelled.write(PyTuple_GET_ITEM(args.ptr(), i));
  }
  size = PyDict_GET_SIZE(kwargs.ptr());
  labelled.write_simple('D', &size, sizeof size);
  for (auto [name, value] : kwargs) {
    labelled.write_constant(name.ptr());
    labelled.label("argument " + std::string(py::str(name)));
    labelled.write(value.ptr());
  }
  if (writer.key == last_uncompiled_) {
    const Variant* variant = last(writer);
    const std::string changed = variant ? variant->reads->first_change() : "";
    return changed.empty() ? "what it captured" : changed;
  }
  const auto difference = size_t(
      std::mismatch(writer.key.begin(), writer.key.end(), last_uncompiled_.begin(), last_uncompiled_.end())
          .first -
      writer.key.begin());
  std::string found = "what it captured";
  for (const auto& [begin, name] : labels)
    if (begin <= difference) found = name;
  return found;
}

const PythonCallable::Variant* PythonCallable::add(Writer& writer, const py::args& args,
                                                   const py::kwargs& kwargs) {
  if (!variants_.empty() && logs("signature"))
    log("signature", options_.name +
                         ": traced again: an argument that is no tensor, or something that the function "
                         "captured, is another");
  variants_.push_front(
      {writer.key,
       detail::make_function(run_current_call, options_, name_arguments(args, kwargs), name_capture),
       std::make_shared<Reads>(), 1});
  by_key_[writer.key].push_back(variants_.begin());
  if (variants_.size() > options_.max_signatures) {
    erase(std::prev(variants_.end()));
    count("signature_evicted");
    if (!std::exchange(warned_, true))
      warn(options_.name + ": more than " + std::to_string(options_.max_signatures) +
           " signatures; the least recently used are dropped. What keeps changing: an argument that is no "
           "tensor, or something that the function captured");
  }
  return &variants_.front();
}

std::vector<std::string> PythonCallable::name_arguments(const py::args& args, const py::kwargs& kwargs) {
  std::vector<std::string> names;
  Writer writer(interned_);
  writer.names = &names;
  py::list parameters =
      py::module_::import("tandem._signature").attr("parameter_names")(original_.function, args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    writer.path = "argument " + std::string(py::str(parameters[i]));
    writer.write(PyTuple_GET_ITEM(args.ptr(), Py_ssize_t(i)));
  }
  for (auto [name, value] : kwargs) {
    writer.path = "argument " + std::string(py::str(name));
    writer.write(value.ptr());
  }
  return names;
}

int PythonCallable::visit(visitproc visit, void* arg) const {
  Py_VISIT(original_.function.ptr());
  Py_VISIT(original_.roots.ptr());
  for (const Variant& variant : variants_)
    if (int stopped = variant.reads->visit(visit, arg)) return stopped;
  return 0;
}

void PythonCallable::clear() {
  variants_.clear();
  by_key_.clear();
  original_ = {py::none(), py::list()};
}

}  // namespace tandem::python

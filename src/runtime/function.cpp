// A program with its compiled signatures: the way of one call.
#include <tandem/compiled.h>

#include <ATen/autocast_mode.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "backends/registry.h"
#include "base/counters.h"
#include "base/log.h"
#include "runtime/wrappers.h"

namespace tandem {
namespace detail {

class Function {
 public:
  Function(Program program, Options options, std::vector<std::string> argument_names, Namer name_capture)
      : program_(std::move(program)), options_(std::move(options)), argument_names_(std::move(argument_names)), name_capture_(std::move(name_capture)), id_(next_id++) {
    if (!program_) throw Error("compile was given an empty function");
    if (options_.cudagraphs) throw UnsupportedError("Options::cudagraphs is not available in this version; leave it false");
    if (options_.memory_budget < 0 || options_.memory_budget > 1) throw Error("Options::memory_budget must lie between 0 and 1");
    if (options_.max_signatures == 0) throw Error("Options::max_signatures must be at least 1");
    if (!options_.fw_compiler) find_backend(options_.backend);
    if (!options_.partition_fn) find_partitioner(options_.partitioner);
    for (const auto& root : options_.watch)
      if (!root) throw Error("Options::watch holds an empty module");
  }

  Returned call(const Tensors& arguments) {
    // Inside another trace a compiled function is the function that it was made of.
    if (Tracer::current()) return program_(arguments);
    Found found = find_or_compile(arguments);
    if (!found.entry->eager_reason.empty()) return program_(arguments);
    if (options_.debug_asserts) found.entry->check_against(program_, arguments);
    return run(std::move(found), arguments);
  }

  Explanation explain(const Tensors& arguments) {
    if (Tracer::current()) throw Error("explain was called inside a traced function; call it outside");
    return find_or_compile(arguments).entry->explain();
  }

  std::string key(const Tensors& arguments) const {
    if (Tracer::current()) throw Error("cache::key was called inside a traced function; call it outside");
    refuse_fakes(arguments);
    Options options = options_;
    options.cache.enabled = false;
    const Entry entry(CompileRequest{program_, options, argument_names_, name_capture_, watch_modules(options_.watch), id_, /*only_key=*/true}, arguments);
    if (!entry.eager_reason.empty()) throw CacheError("this call has no key, since it runs as it is: " + entry.eager_reason);
    const Fingerprint& print = entry.fingerprint();
    if (!print.obstacle.empty()) throw CacheError("this call has no key: " + print.obstacle);
    return print.key;
  }

  void forget() {
    std::unique_lock lock(mutex_);
    entries_.clear();
  }

 private:
  /// What fits a call, with what the call reaches held for as long as it lasts.
  struct Found {
    std::shared_ptr<Entry> entry;
    Tensors reached;
  };

  static Returned run(Found found, const Tensors& arguments) {
    RunningCall call;
    call.inputs = found.entry->gather_inputs(arguments, std::move(found.reached));
    call.entry = std::move(found.entry);
    {
      c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
      call.results = call.entry->forward->run(graph_inputs(call));
    }
    const size_t returned = call.entry->plan.returned.size();
    if (call.results.size() != returned + call.entry->saved_count)
      throw Error("the compiled forward returned " + std::to_string(call.results.size()) + " tensors instead of " +
                  std::to_string(returned + call.entry->saved_count));
    call.saved.assign(std::make_move_iterator(call.results.begin() + int64_t(returned)), std::make_move_iterator(call.results.end()));
    call.results.resize(returned);
    for (const auto& wrapper : call.entry->wrappers) wrapper->after(call);
    return {std::move(call.outputs), call.entry->structure};
  }

  /// What the backward reads of an input keeps its sizes and strides, even where the caller's tensor is about to change them.
  static Tensors graph_inputs(const RunningCall& call) {
    Tensors inputs(call.inputs.begin(), call.inputs.begin() + int64_t(call.entry->graph_inputs()));
    if (call.entry->changes_metadata)
      for (size_t i = 0; i < inputs.size(); ++i)
        if (call.entry->plan.contract.inputs[i].metadata_written) inputs[i] = inputs[i].detach();
    return inputs;
  }

  Found find_or_compile(const Tensors& arguments) {
    const Modes modes = Modes::now();
    const Watched watched = watch_modules(options_.watch);
    if (Found found = find(arguments, watched, modes); found.entry) return found;
    std::lock_guard compiling(compile_mutex_);
    if (Found found = find(arguments, watched, modes); found.entry) return found;
    refuse_fakes(arguments);
    say_what_changed(arguments, watched);
    auto entry = std::make_shared<Entry>(CompileRequest{program_, options_, argument_names_, name_capture_, watched, id_}, arguments);
    keep(entry);
    auto reached = entry->reach(arguments);
    if (!reached) throw Error(shown_name() + ": a tensor that the function captured was gone before its first call; keep it alive");
    return {std::move(entry), std::move(*reached)};
  }

  Found find(const Tensors& arguments, const Watched& watched, const Modes& modes) {
    std::shared_lock lock(mutex_);
    for (const auto& entry : entries_) {
      auto reached = entry->reach(arguments);
      if (!reached || !entry->signature.matches(arguments, *reached, watched, modes)) continue;
      if (entry != entries_.front()) promote_.store(true, std::memory_order_relaxed);
      auto found = entry;
      lock.unlock();
      if (promote_.exchange(false, std::memory_order_relaxed)) move_to_front(found);
      return {std::move(found), std::move(*reached)};
    }
    return {};
  }

  void move_to_front(const std::shared_ptr<Entry>& entry) {
    std::unique_lock lock(mutex_);
    auto at = std::find(entries_.begin(), entries_.end(), entry);
    if (at != entries_.end()) std::rotate(entries_.begin(), at, at + 1);
  }

  void keep(std::shared_ptr<Entry> entry) {
    std::unique_lock lock(mutex_);
    std::erase_if(entries_, [](const auto& old) { return !old->captures_are_alive(); });
    entries_.insert(entries_.begin(), std::move(entry));
    if (entries_.size() <= options_.max_signatures) return;
    entries_.pop_back();
    count("signature_evicted");
    if (!std::exchange(warned_, true))
      warn(shown_name() + ": more than " + std::to_string(options_.max_signatures) + " signatures; the least recently used are dropped. What keeps changing: " +
           last_change_);
  }

  static void refuse_fakes(const Tensors& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].defined() && as_fake(arguments[i]))
        throw Error("argument " + std::to_string(i) + " is a tensor from inside a traced function, kept beyond the trace; it has no data");
  }

  void say_what_changed(const Tensors& arguments, const Watched& watched) {
    std::shared_lock lock(mutex_);
    if (entries_.empty()) return;
    const Entry& last = *entries_.front();
    auto reached = last.reach(arguments);
    last_change_ = reached                     ? last.signature.difference(arguments, *reached, watched, last.names)
                   : last.captures_are_alive() ? "other tensors share memory than before"
                                               : "a captured tensor was replaced";
    if (logs("signature")) log("signature", shown_name() + ": traced again: " + last_change_);
  }

  std::string shown_name() const { return options_.name.empty() ? "function " + std::to_string(id_) : options_.name; }

  static inline std::atomic<size_t> next_id = 0;
  Program program_;
  Options options_;
  std::vector<std::string> argument_names_;
  Namer name_capture_;
  size_t id_;
  std::shared_mutex mutex_;
  std::mutex compile_mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;          ///< most recently used first
  std::atomic<bool> promote_ = false;
  bool warned_ = false;
  std::string last_change_;
};

namespace {

std::mutex functions_mutex;
std::vector<std::weak_ptr<Function>> functions;

}  // namespace

std::shared_ptr<Function> make_function(Program program, Options options, std::vector<std::string> argument_names, Namer name_capture) {
  auto function = std::make_shared<Function>(std::move(program), std::move(options), std::move(argument_names), std::move(name_capture));
  std::lock_guard lock(functions_mutex);
  std::erase_if(functions, [](const auto& old) { return old.expired(); });
  functions.push_back(function);
  return function;
}

Returned call(Function& function, const Tensors& inputs) { return function.call(inputs); }
Explanation explain(Function& function, const Tensors& inputs) { return function.explain(inputs); }
std::string key(const Function& function, const Tensors& inputs) { return function.key(inputs); }

}  // namespace detail

Compiled::Compiled(Callable callable, Options options)
    : function_(detail::make_function(
          callable ? detail::Program([callable](const Tensors& inputs) { return detail::Returned{callable(inputs), nullptr}; }) : detail::Program(),
          std::move(options))) {}

void reset() {
  std::vector<std::shared_ptr<detail::Function>> alive;
  {
    std::lock_guard lock(detail::functions_mutex);
    for (const auto& function : detail::functions)
      if (auto kept = function.lock()) alive.push_back(std::move(kept));
  }
  for (const auto& function : alive) function->forget();
  reset_backends();
  reset_counters();
}

}  // namespace tandem

// A program with its compiled signatures: the way of one call.
#include <tandem/compiled.h>

#include <atomic>
#include <mutex>

#include "backends/registry.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/machine.h"
#include "runtime/entries.h"
#include "runtime/novelty.h"
#include "runtime/wrappers.h"
#include "trace/watcher.h"

namespace tandem {
namespace detail {

class Function {
 public:
  Function(Program program, Options options, std::vector<std::string> argument_names, Namer name_capture)
      : program_(std::move(program)),
        options_(std::move(options)),
        argument_names_(std::move(argument_names)),
        name_capture_(std::move(name_capture)),
        id_(next_id++),
        entries_(options_.max_signatures) {
    if (!program_) throw Error("compile was given an empty function");
    if (options_.cudagraphs)
      throw UnsupportedError("Options::cudagraphs is not available in this version; leave it false");
    if (options_.memory_budget < 0 || options_.memory_budget > 1)
      throw Error("Options::memory_budget must lie between 0 and 1");
    if (options_.memory_budget_bytes && *options_.memory_budget_bytes < 0)
      throw Error("Options::memory_budget_bytes must not be negative");
    if (!options_.random.empty() && options_.random != "libtorch" && options_.random != "counter")
      throw Error("Options::random must be libtorch, counter or empty, not '" + options_.random + "'");
    if (options_.max_signatures == 0) throw Error("Options::max_signatures must be at least 1");
    if (!options_.fw_compiler) find_backend(options_.backend);
    if (!options_.partition_fn) find_partitioner(options_.partitioner);
    for (const auto& root : options_.watch)
      if (!root) throw Error("Options::watch holds an empty module");
    // Every key says where it was made; a process finds that out once, and no call needs to wait for it.
    cpu_identity();
    libtorch_identity();
  }

  Returned call(const Tensors& arguments) {
    // Inside another trace, or a run that is compared with one, a compiled function is the function that it
    // was made of.
    if (Tracer::current() || Watcher::current()) return program_(arguments);
    Found found = find_or_compile(arguments, /*runs=*/true);
    if (found.replayed) return std::move(*found.replayed);
    if (!found.entry) return run_uncompiled("its calls keep changing: " + last_change(), false, arguments);
    if (const std::string& reason = found.entry->reason_to_run_as_it_is(); !reason.empty())
      return run_uncompiled(reason, found.entry->looks_at_data, arguments);
    if (options_.debug_asserts)
      if (const std::string difference = found.entry->difference_from(program_, arguments);
          !difference.empty())
        throw Error(difference);
    if (found.entry->is_watched_call()) return watch(std::move(found), arguments);
    return run(std::move(found), arguments);
  }

  Explanation explain(const Tensors& arguments) {
    if (Tracer::current()) throw Error("explain was called inside a traced function; call it outside");
    return find_or_compile(arguments, /*runs=*/false).entry->explain();
  }

  std::string key(const Tensors& arguments) const {
    if (Tracer::current()) throw Error("cache::key was called inside a traced function; call it outside");
    refuse_fakes(arguments);
    const Entry entry(CompileRequest{program_,
                                     options_,
                                     argument_names_,
                                     name_capture_,
                                     watch_modules(options_.watch),
                                     {},
                                     id_,
                                     0,
                                     /*only_key=*/true},
                      arguments);
    if (!entry.eager_reason.empty())
      throw CacheError("this call has no key, since it runs as it is: " + entry.eager_reason);
    const Fingerprint& print = entry.fingerprint();
    if (!print.obstacle.empty()) throw CacheError("this call has no key: " + print.obstacle);
    return print.key;
  }

  void forget() { entries_.clear(); }

 private:
  struct Found : FoundEntry {
    std::optional<Returned> replayed = {};  ///< the results, where the call has happened already
  };

  Returned run_uncompiled(const std::string& reason, bool looks_at_data, const Tensors& arguments) {
    count("ran_uncompiled");
    constexpr size_t many = 8;
    if (looks_at_data || ++uncompiled_calls_ == many)
      warn_once("runs as it is: " + reason +
                (looks_at_data ? "" : "; Options::must_compile makes this an error"));
    return program_(arguments);
  }

  /// The original runs and is compared with the record, so the results are right whatever comes of it; where
  /// compiled code gives other bits the program is traced again instead.
  Returned watch(Found found, const Tensors& arguments) {
    Entry& entry = *found.entry;
    Tensors inputs = entry.gather_inputs(arguments, found.reached);
    if (!entry.can_be_followed(inputs)) {
      const std::string difference = entry.difference_from(program_, arguments);
      if (difference.empty()) return run(std::move(found), arguments);
      break_promise(entry, difference);
      return program_(arguments);
    }
    const Graph record = entry.record();
    Watcher watcher(record, std::move(inputs));
    Returned returned;
    watcher.watch(
        [&] {
          returned = program_(arguments);
          return returned.tensors;
        },
        entry.recorded_outputs());
    if (!watcher.difference().empty()) break_promise(entry, watcher.difference());
    return returned;
  }

  void break_promise(Entry& entry, const std::string& difference) {
    count("promise_broken");
    entry.give_up("it did something else than when it was traced: " + difference);
    warn(shown_name() +
         ": runs as it is from now on, since it did something else than when it was traced, though nothing "
         "changed that could be seen: " +
         difference + ". What changes must be an argument, or belong to a module in Options::watch.");
  }

  void warn_once(const std::string& what) {
    if (!warned_uncompiled_.exchange(true)) warn(shown_name() + ": " + what);
  }

  static Returned run(Found found, const Tensors& arguments) {
    Tensors inputs = found.entry->gather_inputs(arguments, std::move(found.reached));
    return run_compiled(std::move(found.entry), std::move(inputs));
  }

  Found find_or_compile(const Tensors& arguments, bool runs) {
    const Modes modes = Modes::now(!is_interpreted_);
    const Watched watched = watch_modules(options_.watch);
    if (FoundEntry found = entries_.find(arguments, watched, modes);
        found.entry && !found.entry->gets_second_chance)
      return {std::move(found)};
    std::lock_guard compiling(compile_mutex_);
    FoundEntry found = entries_.find(arguments, watched, modes);
    if (found.entry && !found.entry->gets_second_chance) return {std::move(found)};
    if (!found.entry) {
      auto does_the_same = [&](Entry& entry) {
        return entry.difference_from(program_, arguments, known_leaves()).empty();
      };
      if (FoundEntry other = entries_.find_with_other_gradients(arguments, watched, modes, does_the_same);
          other.entry)
        return {std::move(other)};
    }
    refuse_fakes(arguments);
    say_what_changed(arguments, watched);
    if (runs && !found.entry && !options_.must_compile &&
        !novelty_.is_worth_compiling(Signature::hash_of(arguments, watched, modes), entries_.count_unpaid()))
      return {};
    const Tensors leaves = known_leaves();
    auto entry = std::make_shared<Entry>(
        CompileRequest{program_, options_, argument_names_, name_capture_, watched, leaves, id_,
                       signatures_++, false, runs, found.entry != nullptr,
                       found.entry && !std::exchange(has_said_where_, true)},
        arguments);
    auto replayed = std::exchange(entry->replayed, std::nullopt);
    if (entries_.keep(entry, found.entry)) warn_of_evictions();
    auto reached = entry->reach(arguments);
    if (!reached)
      throw Error(shown_name() +
                  ": a tensor that the function captured was gone before its first call; keep it alive");
    return {{std::move(entry), std::move(*reached)}, std::move(replayed)};
  }

  /// What a trace may find cleared before it comes to it.
  Tensors known_leaves() const {
    Tensors leaves = entries_.leaves();
    for (const auto& root : options_.watch)
      for (const at::Tensor& parameter : root->parameters()) leaves.push_back(parameter);
    return leaves;
  }

  void warn_of_evictions() {
    if (!std::exchange(warned_, true))
      warn(shown_name() + ": more than " + std::to_string(options_.max_signatures) + " signatures, or than " +
           std::to_string(Entries::most_bytes >> 20) +
           " MiB of them; the least recently used are dropped. What keeps changing: " + last_change());
  }

  static void refuse_fakes(const Tensors& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].defined() && as_fake(arguments[i]))
        throw Error("argument " + std::to_string(i) +
                    " is a tensor from inside a traced function, kept beyond the trace; it has no data");
  }

  void say_what_changed(const Tensors& arguments, const Watched& watched) {
    const std::shared_ptr<Entry> last = entries_.last();
    if (!last) return;
    auto reached = last->reach(arguments);
    std::string change = reached ? last->signature.difference(arguments, *reached, watched, last->names)
                         : last->captures_are_alive() ? "other tensors share memory than before"
                                                      : "a captured tensor was replaced";
    if (logs("signature")) log("signature", shown_name() + ": traced again: " + change);
    std::lock_guard lock(change_mutex_);
    last_change_ = std::move(change);
  }

  std::string last_change() {
    std::lock_guard lock(change_mutex_);
    return last_change_;
  }

  std::string shown_name() const {
    return options_.name.empty() ? "function " + std::to_string(id_) : options_.name;
  }

  static inline std::atomic<size_t> next_id = 0;
  Program program_;
  Options options_;
  const bool is_interpreted_ = is_interpreted(options_);
  std::vector<std::string> argument_names_;
  Namer name_capture_;
  size_t id_;
  /// that were traced so far; used while compile_mutex_ is held
  size_t signatures_ = 0;
  std::mutex compile_mutex_;
  Entries entries_;
  Novelty novelty_;              ///< used while compile_mutex_ is held
  bool has_said_where_ = false;  ///< where the first tensor that it keeps was made
  bool warned_ = false;
  std::atomic<bool> warned_uncompiled_ = false;
  std::atomic<size_t> uncompiled_calls_ = 0;
  std::mutex change_mutex_;
  std::string last_change_;
};

namespace {

std::mutex functions_mutex;
std::vector<std::weak_ptr<Function>> functions;

}  // namespace

std::shared_ptr<Function> make_function(Program program, Options options,
                                        std::vector<std::string> argument_names, Namer name_capture) {
  auto function = std::make_shared<Function>(std::move(program), std::move(options),
                                             std::move(argument_names), std::move(name_capture));
  std::lock_guard lock(functions_mutex);
  std::erase_if(functions, [](const auto& old) { return old.expired(); });
  functions.push_back(function);
  return function;
}

Returned call(Function& function, const Tensors& inputs) { return function.call(inputs); }
Explanation explain(Function& function, const Tensors& inputs) { return function.explain(inputs); }
std::string key(const Function& function, const Tensors& inputs) { return function.key(inputs); }

void refuse_empty(const char* kind) {
  throw Error(std::string("a compiled ") + kind +
              " was called into which nothing was compiled; assign it what tandem::compile returns first");
}

}  // namespace detail

Compiled::Compiled(Callable callable, Options options)
    : function_(detail::make_function(callable ? detail::Program([callable](const Tensors& inputs) {
                                        return detail::Returned{callable(inputs), nullptr};
                                      })
                                               : detail::Program(),
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

/// One compiled function for each set of non-tensor arguments that a call came with.
#pragma once

#include <tandem/compiled.h>
#include <tandem/pack.h>

#include <list>
#include <mutex>

namespace [[gnu::visibility("default")]] tandem {
namespace detail {

/// The functions made so far, by what the call held besides tensors; bounded by Options::max_signatures;
/// thread-safe.
class Variants {
 public:
  explicit Variants(Options options, Namer name_capture = {})
      : options_(std::move(options)), name_capture_(std::move(name_capture)) {}

  /// The function made for `rest`, or null.
  std::shared_ptr<Function> find(const std::string& rest);
  /// Makes it, unless another thread was faster; the least recently used one goes when there are too many.
  std::shared_ptr<Function> add(const std::string& rest, Program program,
                                std::vector<std::string> argument_names);

 private:
  std::shared_ptr<Function> find_locked(const std::string& rest);

  struct Entry {
    std::string rest;
    std::shared_ptr<Function> function;
  };
  std::mutex mutex_;
  Options options_;
  Namer name_capture_;
  std::list<Entry> entries_;  ///< most recently used first
  bool warned_ = false;
};

/// Writes the arguments of a call in order; their names count them.
template <class... Values>
void write_arguments(Writer& to, const Values&... values) {
  size_t position = 0;
  [[maybe_unused]] auto write_one = [&](const auto& value) {
    if (to.names) to.path = "argument " + std::to_string(position++);
    to.write(value);
  };
  (write_one(values), ...);
}

/// What a program returned, taken apart; `structure` is the rest that `put_together` reads.
template <class Result>
Returned take_apart(const Result& result) {
  Writer writer;
  writer.write(result);
  return {std::move(writer.tensors), std::make_shared<const std::string>(std::move(writer.rest))};
}

template <class Result>
Result put_together(const Returned& returned) {
  static_assert(!borrows<Result>,
                "tandem::compile: a result owns what it holds; use std::string and std::vector in place of "
                "pointers and views.");
  return Reader(returned.tensors, *static_cast<const std::string*>(returned.structure.get())).read<Result>();
}

/// The program that calls `invoke(values...)` with `values` put together from tensors and `rest`.
template <class... Values, class Invoke>
Program make_program(Invoke invoke, std::string rest) {
  return [invoke = std::move(invoke), rest = std::move(rest)](const Tensors& tensors) -> Returned {
    Reader reader(tensors, rest);
    std::tuple<Values...> values{reader.read<Values>()...};
    using Result = std::remove_cvref_t<decltype(std::apply(invoke, std::move(values)))>;
    if constexpr (std::is_void_v<Result>) {
      std::apply(invoke, std::move(values));
      return take_apart(std::tuple<>{});
    } else {
      return take_apart<Result>(std::apply(invoke, std::move(values)));
    }
  };
}

/// The function for arguments like these, made with `invoke` when they are new; `to` is left with the
/// arguments taken apart.
template <class... Values, class Invoke>
std::shared_ptr<Function> function_for(Variants& variants, const Invoke& invoke, Writer& to,
                                       const Values&... values) {
  size_t kept = to.rest.size();
  write_arguments(to, values...);
  if (auto function = variants.find(to.rest)) return function;
  std::vector<std::string> names;
  Writer naming;
  naming.names = &names;
  write_arguments(naming, values...);
  return variants.add(to.rest, make_program<Values...>(invoke, to.rest.substr(kept)), std::move(names));
}

/// A function that can be copied and calls this one.
template <class F>
Callable copyable(F&& fn) {
  if constexpr (std::is_copy_constructible_v<std::decay_t<F>>) {
    return Callable(std::forward<F>(fn));
  } else {
    auto shared = std::make_shared<std::decay_t<F>>(std::forward<F>(fn));
    return [shared](const Tensors& inputs) -> Tensors { return (*shared)(inputs); };
  }
}

/// The result of a program as the original would return it.
template <class Result>
Result call_like_original(Function& function, const Tensors& tensors) {
  Returned returned = call(function, tensors);
  if constexpr (!std::is_void_v<Result>) return put_together<Result>(returned);
}

}  // namespace detail
}  // namespace tandem

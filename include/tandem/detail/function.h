/// What all compiled objects are made of: a program on a list of tensors, and the code for each signature.
#pragma once

#include <tandem/graph.h>

#include <functional>
#include <memory>

// Not exported: its members are the library's own.
namespace tandem::detail {
class Function;  ///< a program with its compiled signatures; thread-safe
}

namespace [[gnu::visibility("default")]] tandem {

struct Explanation;
struct Options;

namespace detail {

/// What a front end's program returns: the tensors, and how the front end puts them back together.
struct Returned {
  Tensors tensors;
  std::shared_ptr<const void> structure;
};
using Program = std::function<Returned(const Tensors&)>;

/// The user's name for a captured tensor ("parameter fc.weight"), or an empty string.
using Namer = std::function<std::string(const at::Tensor&)>;

/// `argument_names` name the tensors in errors and contracts; missing ones are numbered.
std::shared_ptr<Function> make_function(Program program, Options options,
                                        std::vector<std::string> argument_names = {},
                                        Namer name_capture = {});
/// Runs it, compiled where it was compiled for such inputs or can be.
Returned call(Function& function, const Tensors& inputs);
/// Traces and compiles for these inputs without running.
Explanation explain(Function& function, const Tensors& inputs);
/// See cache::key.
std::string key(const Function& function, const Tensors& inputs);
/// Throws the Error of a compiled `kind` ("function", "module", "script") that nothing was assigned to.
[[noreturn]] void refuse_empty(const char* kind);

}  // namespace detail
}  // namespace tandem

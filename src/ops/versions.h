/// What `register_function` and `register_library` were told.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <tandem/versions.h>

#include <map>
#include <optional>
#include <typeindex>

namespace tandem {

/// A custom autograd function that has a version.
struct VersionedFunction {
  std::string version;
  detail::ContextOf context = nullptr;  ///< what its forward left for its backward
};

/// By the type of its node; nothing when it was not registered.
std::optional<VersionedFunction> find_function(const std::type_info& node);

/// Of a node's type as C++ writes it: `Scale` for the node of the custom function Scale; the type's own name
/// for any other node, less libtorch's usual prefix.
std::string node_type_name(std::string type);
/// Whether this is the node of a custom function: its type is torch::autograd::CppNode<...>.
bool is_custom_function(std::string_view type);

/// Versions by name, of all that were registered.
std::multimap<std::string, std::string> function_versions();
std::map<std::string, std::string> library_versions();

/// The part before "::".
std::string library_of(const std::string& op);
/// Whether a library is libtorch's own, whose version is libtorch's.
bool belongs_to_libtorch(const std::string& library);
/// Whether an operator is somebody else's: what it does besides computing its results nobody says.
bool is_foreign(const c10::OperatorHandle& op);

}  // namespace tandem

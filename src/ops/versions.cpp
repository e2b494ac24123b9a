#include "ops/versions.h"

#include <c10/util/Type.h>
#include <tandem/error.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

namespace tandem {
namespace {

constexpr std::string_view custom_prefix = "torch::autograd::CppNode<",
                           generated_prefix = "torch::autograd::generated::";

/// Libraries that are compiled into libtorch, and ours, which is known by the build of Tandem.
constexpr std::string_view own_libraries[] = {"aten",
                                              "prim",
                                              "prims",
                                              "rngprims",
                                              "inductor",
                                              "inductor_prims",
                                              "quantized",
                                              "_quantized",
                                              "quantization",
                                              "static_runtime",
                                              "mkldnn",
                                              "mkldnn_prepacked",
                                              "onednn",
                                              "mkl",
                                              "prepacked",
                                              "sparse",
                                              "profiler",
                                              "c10d",
                                              "_c10d_functional",
                                              "_c10d_functional_autograd",
                                              "symm_mem",
                                              "tandem"};

struct Registered {
  std::mutex mutex;
  std::map<std::type_index, VersionedFunction> functions;
  std::map<std::string, std::string> libraries;
};

Registered& registered() {
  // Never destroyed: threads may ask while the process ends.
  static auto& all = *new Registered;
  return all;
}

void refuse_empty_version(const char* function, const std::string& name, const std::string& version) {
  if (version.empty())
    throw Error(std::string(function) + " was given an empty version for " + name +
                "; give it one that changes whenever its code does");
}

}  // namespace

bool is_custom_function(std::string_view type) { return type.starts_with(custom_prefix); }

std::string node_type_name(std::string name) {
  if (name.starts_with(generated_prefix)) return name.substr(generated_prefix.size());
  if (!name.starts_with(custom_prefix)) return name;
  name = name.substr(custom_prefix.size(), name.size() - custom_prefix.size() - 1);
  // "CppNode<A<B> >": where the argument ends in a bracket itself, it is written with a space behind it.
  if (name.ends_with(' ')) name.pop_back();
  return name;
}

void detail::register_function_node(const std::type_info& node, const std::string& version,
                                    ContextOf context) {
  const std::string name = node_type_name(c10::demangle(node.name()));
  refuse_empty_version("register_function", name, version);
  Registered& all = registered();
  std::lock_guard lock(all.mutex);
  for (const auto& [type, function] : all.functions)
    if (type != std::type_index(node) && function.version == version &&
        c10::demangle(type.name()) == c10::demangle(node.name()))
      throw Error("register_function: two custom autograd functions are named " + name +
                  " and have version " + version +
                  ", so that the cache could not tell them apart; give them different names or versions");
  all.functions[std::type_index(node)] = {version, context};
}

std::optional<VersionedFunction> find_function(const std::type_info& node) {
  Registered& all = registered();
  std::lock_guard lock(all.mutex);
  auto found = all.functions.find(std::type_index(node));
  return found == all.functions.end() ? std::nullopt : std::optional(found->second);
}

std::multimap<std::string, std::string> function_versions() {
  Registered& all = registered();
  std::lock_guard lock(all.mutex);
  // Types are sorted by address in there, names with versions must not be.
  std::set<std::pair<std::string, std::string>> sorted;
  for (const auto& [type, function] : all.functions)
    sorted.emplace(c10::demangle(type.name()), function.version);
  return {sorted.begin(), sorted.end()};
}

void register_library(const std::string& name, const std::string& version) {
  refuse_empty_version("register_library", name, version);
  if (name.empty() || name.find(':') != name.npos)
    throw Error("register_library was given '" + name +
                "', which is no namespace of operators; give the part before the :: of their names");
  if (belongs_to_libtorch(name))
    throw Error("register_library: the operators of " + name +
                " have the version of libtorch or of Tandem; register the library that you wrote");
  Registered& all = registered();
  std::lock_guard lock(all.mutex);
  all.libraries[name] = version;
}

std::map<std::string, std::string> library_versions() {
  Registered& all = registered();
  std::lock_guard lock(all.mutex);
  return all.libraries;
}

std::string library_of(const std::string& op) { return op.substr(0, op.find("::")); }

bool belongs_to_libtorch(const std::string& library) {
  return std::find(std::begin(own_libraries), std::end(own_libraries), library) != std::end(own_libraries);
}

bool is_foreign(const c10::OperatorHandle& op) {
  return !belongs_to_libtorch(library_of(op.operator_name().name));
}

}  // namespace tandem

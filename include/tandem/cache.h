/// The cache of compiled code: what is in it, and what goes in and out. Where options are not given, it is
/// the cache that a compile with default options uses.
#pragma once

#include <tandem/detail/programs.h>

namespace [[gnu::visibility("default")]] tandem {
namespace cache {

/// What is in a cache, and what came of it.
struct Stats {
  std::filesystem::path directory;
  uint64_t entries = 0, artifacts = 0, bytes = 0;  ///< in the folder now
  /// in this process, over all folders, since it began or since `tandem::reset`
  uint64_t hits = 0, misses = 0, bypasses = 0, unfit = 0, corrupt = 0, saved = 0;
  double seconds_saved = 0;  ///< what the hits would have taken to compile
};

/// Removes every entry and artifact from the folder, which may be absent; other files there, what is in
/// memory, and the remote store stay.
void clear(const CacheOptions& options = {});

/// What the folder holds, and what this process had from its caches.
Stats stats(const CacheOptions& options = {});

/// Writes what this process compiled or loaded, in all of its caches, into one file that `import_bundle`
/// reads; signed when there is a TANDEM_CACHE_KEY.
void export_bundle(const std::filesystem::path& path);
/// The same of one cache, signed when that has a key.
void export_bundle(const std::filesystem::path& path, const CacheOptions& options);

/// Puts what a bundle holds into the folder, all of it or, when anything is damaged or (where there is a key)
/// not signed with it, nothing and Error.
void import_bundle(const std::filesystem::path& path, const CacheOptions& options = {});

/// The key under which a compile of the function with these options keeps code for such inputs; traces, and
/// neither compiles nor asks the cache. Throws CacheError, with the reason, for a call that is not cached.
template <class F>
  requires(detail::TensorsFunction<F> || detail::TypedFunction<F>)
std::string key(F fn, const Tensors& inputs, const Options& options = {}) {
  return detail::key(*detail::make_function(detail::program_of(std::move(fn)), options), inputs);
}
/// The same for a module, in the mode that it is in.
template <class Impl>
  requires std::is_base_of_v<torch::nn::Module, Impl>
std::string key(std::shared_ptr<Impl> module, const Tensors& inputs, const Options& options = {}) {
  return detail::key(*detail::make_function(detail::program_of_module(std::move(module)), options), inputs);
}
template <class Impl>
std::string key(torch::nn::ModuleHolder<Impl> module, const Tensors& inputs, const Options& options = {}) {
  return key(module.ptr(), inputs, options);
}

}  // namespace cache
}  // namespace tandem

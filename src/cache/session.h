/// What the cache knows of one traced call, and what it is told of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cache/levels.h"
#include "key/fingerprint.h"

namespace tandem {

/// Looks a call up and saves what is compiled for it. Nothing that goes wrong inside the cache stops a
/// compile: it becomes a bypass, counted, with a warning, unless the options are strict.
class Remembered {
 public:
  using Artifacts = cache::Artifacts;

  /// Finds the cache that the options speak of, none where a key alone is asked for. In strict mode throws
  /// CacheError when it cannot be used.
  Remembered(const Options& options, bool only_key);

  /// Gives the call its key, also where the cache is off.
  void identify(const Traced& traced, const Plan& plan, const Options& options);
  /// What was recorded of its backward is part of the key.
  void identify_by(const Graph& joint) { add_backward(fingerprint_, joint); }
  /// Asks the cache. In strict mode throws CacheError when the call cannot be cached, or when what the folder
  /// has is damaged.
  void look_up();
  /// Runs `restore` on what was found, if anything was: first on what the folder has, then on what the remote
  /// store has. An exception from it makes that unfit: counted, and in strict mode a CacheError where it was
  /// the folder's.
  template <class Restore>
  bool restore(const Restore& restore);
  /// Says that a part of what was restored is no good. In strict mode throws CacheError where it was the
  /// folder's.
  void note_unfit(const std::string& why);
  /// To be called when the call was compiled, and is in no cache.
  void count_miss();

  /// From now on nothing is saved. In strict mode throws CacheError.
  void bypass(const std::string& reason);
  /// The same for what is no news of the cache's: a call that is not compiled at all, or whose backward
  /// libtorch refuses.
  void bypass_silently(const std::string& reason);
  /// The same for trouble of the cache's own: the reason says that it was not expected.
  void fail(const std::string& what);
  bool saves() const { return levels_ != nullptr && !bypassed_; }
  /// Puts the entry, with what others added to it meanwhile.
  void save(cache::StoredEntry entry, const Artifacts& artifacts);

  /// hit | miss | bypass | off
  const std::string& state() const { return state_; }
  const std::string& reason() const { return reason_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  /// Of a bypass: trouble of the cache's own.
  bool is_unexpected() const { return unexpected_; }

  struct Hit {
    bool remote = false;
    size_t entry_bytes = 0, artifact_bytes = 0;
  };
  const std::optional<Hit>& hit() const { return hit_; }
  /// The levels that were asked for the call, in order: local | remote.
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  void find();
  void find_remote();
  void tell(const char* event, const nlohmann::ordered_json& more) const;
  void give_up(const std::string& reason);
  void refuse_unfit(const std::string& why);
  void say_unfit(const std::string& why, bool remote);
  void count_hit();

  Fingerprint fingerprint_;
  std::string name_, state_ = "off", reason_;
  bool strict_ = false, bypassed_ = false, unexpected_ = false;
  /// what is in the folder does not fit, and is not to be added to
  bool replaces_ = false;
  std::shared_ptr<cache::Levels> levels_;
  std::optional<cache::Found> found_;
  std::optional<Hit> hit_;
  std::vector<std::string> asked_;
};

template <class Restore>
bool Remembered::restore(const Restore& restore) {
  while (found_) {
    std::string why;
    try {
      restore(*found_);
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (why.empty()) {
      count_hit();
      return true;
    }
    refuse_unfit(why);
  }
  return false;
}

}  // namespace tandem

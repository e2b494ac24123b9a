/// Everything a user can ask of a compile.
#pragma once

#include <tandem/backend.h>
#include <tandem/partition.h>

#include <cstdint>
#include <filesystem>

namespace torch::nn {
class Module;
}

namespace [[gnu::visibility("default")]] tandem {

/// Where compiled code is remembered (docs/cache.md).
struct CacheOptions {
  bool enabled = true;  ///< TANDEM_CACHE=off beats everything
  /// a call that cannot be cached, and an unfit or damaged entry in the folder, throw CacheError
  bool strict = false;
  bool local = true;  ///< use the folder
  /// default $TANDEM_CACHE_DIR, else $XDG_CACHE_HOME/tandem, else ~/.cache/tandem
  std::filesystem::path directory = {};
  /// "redis://[user:password@]host:port[/db]"; default $TANDEM_REMOTE_CACHE; "off": none, whatever that says
  std::string remote = {};
  std::string remote_namespace = "tandem";  ///< prefix of every remote key, beside the format version
  /// HMAC key; default $TANDEM_CACHE_KEY; when set, entries without a valid signature are refused
  std::string signing_key = {};
  uint64_t max_bytes = 4ull << 30;  ///< of the folder; least recently used files go first
};

/// What a compile is asked for; `{.backend = "debug"}` leaves the rest as it is here.
struct Options {
  std::string backend = "eager";        ///< eager | debug | fuse | a registered name
  bool cudagraphs = false;              ///< not available yet: asking for it is an error
  std::string partitioner = "min_cut";  ///< min_cut | default | a registered name
  /// 0 the least memory that computing again can reach ... 1 keep what is fastest; for partitioners that look
  /// at it
  double memory_budget = 1.0;
  /// a limit on what is kept between forward and backward, for partitioners that look at it
  std::optional<int64_t> memory_budget_bytes = {};
  /// what partitioners take nodes to cost; empty: what was measured on this machine, where a budget asks
  CostModel cost_model = {};
  /// libtorch: eager's random numbers | counter: functions of a seed that is drawn once a call, which can be
  /// computed again | empty: what the backend prefers.
  std::string random = {};
  bool keep_input_mutations = true;  ///< writes to inputs stay in the graph where autograd allows
  /// calls 2, 3, 5, 9, 17 ... of a signature run the original and compare its operators with the record
  bool watched_calls = true;
  /// a program that cannot be compiled throws UnsupportedError instead of running as it is
  bool must_compile = false;
  /// check every run-time assumption at every call; retrace and compare
  bool debug_asserts = false;
  /// keep the user's source location of every node (costs a stack walk a node)
  bool record_locations = false;
  std::string name = {};  ///< shows in logs, dumps and errors
  /// modules a lambda captured: train/eval joins the signature
  std::vector<std::shared_ptr<torch::nn::Module>> watch = {};
  /// beyond it the least recently used goes, with one warning that says what keeps changing
  size_t max_signatures = 64;
  std::vector<size_t> static_arguments = {};  ///< positions of arguments whose address stays: parameters
  /// override the backend; bw and inference fall back to fw
  Compiler fw_compiler = {}, bw_compiler = {}, inference_compiler = {};
  Partitioner partition_fn = {};  ///< overrides the partitioner
  /// none: what the backend asks for; empty table: nothing is decomposed
  std::optional<DecompositionTable> decompositions = {};
  CacheOptions cache = {};
};

}  // namespace tandem

/// Everything a user can ask of a compile.
#pragma once

#include <tandem/partition.h>

#include <cstdint>
#include <filesystem>

namespace torch::nn {
class Module;
}

namespace tandem {

/// Where compiled code is remembered (docs/cache.md).
struct CacheOptions {
  bool enabled = true;  ///< TANDEM_CACHE=off beats everything
  bool strict =
      false;  ///< a call that cannot be cached, and an unfit or damaged entry in the folder, throw CacheError
  bool local = true;  ///< use the folder
  std::filesystem::path directory =
      {};                   ///< default $TANDEM_CACHE_DIR, else $XDG_CACHE_HOME/tandem, else ~/.cache/tandem
  std::string remote = {};  ///< "redis://[user:password@]host:port[/db]"; default $TANDEM_REMOTE_CACHE;
                            ///< "off": none, whatever that says
  std::string remote_namespace = "tandem";  ///< prefix of every remote key, beside the format version
  std::string signing_key =
      {};  ///< HMAC key; default $TANDEM_CACHE_KEY; when set, entries without a valid signature are refused
  uint64_t max_bytes = 4ull << 30;  ///< of the folder; least recently used files go first
};

struct Options {
  std::string backend = "eager";        ///< eager | debug | a registered name
  bool cudagraphs = false;              ///< not available yet: asking for it is an error
  std::string partitioner = "default";  ///< default | a registered name
  double memory_budget =
      1.0;  ///< 0 recompute all that may be ... 1 keep what is fastest; for partitioners that look at it
  /// libtorch: eager's random numbers | counter: functions of a seed that is drawn once a call, which can be
  /// computed again | empty: what the backend prefers.
  std::string random = {};
  bool keep_input_mutations = true;  ///< writes to inputs stay in the graph where autograd allows
  bool watched_calls = true;  ///< calls 2, 3, 5, 9, 17 ... of a signature run the original and compare its
                              ///< operators with the record
  bool must_compile =
      false;  ///< a program that cannot be compiled throws UnsupportedError instead of running as it is
  bool debug_asserts = false;  ///< check every run-time assumption at every call; retrace and compare
  bool record_locations =
      false;              ///< keep the user's source location of every node (costs a stack walk a node)
  std::string name = {};  ///< shows in logs, dumps and errors
  std::vector<std::shared_ptr<torch::nn::Module>> watch =
      {};  ///< modules a lambda captured: train/eval joins the signature
  size_t max_signatures =
      64;  ///< beyond it the least recently used goes, with one warning that says what keeps changing
  std::vector<size_t> static_arguments = {};  ///< positions of arguments whose address stays: parameters
  Compiler fw_compiler = {}, bw_compiler = {},
           inference_compiler = {};  ///< override the backend; bw and inference fall back to fw
  Partitioner partition_fn = {};     ///< overrides the partitioner
  std::optional<DecompositionTable> decompositions =
      {};  ///< none: what the backend asks for; empty table: nothing is decomposed
  CacheOptions cache = {};
};

}  // namespace tandem

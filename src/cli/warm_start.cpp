#include "bench.h"
#include "process.h"
#include "stored.h"
#include "table.h"

#include <tandem/cache.h>
#include <tandem/error.h>

#include <iostream>

namespace tandem::cli {

namespace {

/// What compiling or loading took and counted in one process, and what of the entry had to wait for the first
/// backward; the cache's own counters say less than its state.
void add(Json& line, const std::string& prefix, const Json& step) {
  line[prefix + "_s"] = step["compile_s"];
  line[prefix + "_trace_s"] = step["trace_s"];
  line[prefix + "_backward_s"] = double(step["counters"]["cache_backward_us"]) / 1e6;
  line[prefix + "_state"] = step["cache_state"];
  Json& work = line[prefix + "_work"] = Json::object();
  for (const auto& [name, times] : step["counters"].items())
    if (times > 0 && !name.starts_with("cache_")) work[name] = times;
}

/// What the folder has in files of this kind.
uint64_t bytes_of(cache::Kind kind, const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const cache::StoredFile& file : open_store(cache_at(folder)).list())
    if (file.kind == kind) bytes += file.bytes;
  return bytes;
}

void export_folder(const std::filesystem::path& folder, const std::filesystem::path& bundle) {
  const Finished child =
      run_program({this_program(), "cache", "export", bundle, "--directory", folder, "--json"});
  if (child.status != 0)
    throw Error("the export of the cache in " + folder.string() + " ended with status " +
                std::to_string(child.status));
}

Row row(const char* start, const Json& line, const std::string& prefix) {
  std::string work;
  for (const auto& [name, times] : line[prefix + "_work"].items()) work += (work.empty() ? "" : ", ") + name;
  return {start,
          line[prefix + "_state"],
          fixed(line[prefix + "_s"], 4),
          fixed(line[prefix + "_trace_s"], 4),
          fixed(line[prefix + "_backward_s"], 4),
          work};
}

}  // namespace

void print_warm_start(const BenchOptions& options) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path / "compiled", imported = scratch.path / "imported",
                              bundle = scratch.path / "bundle";
  auto start_in = [&](const std::filesystem::path& cache) {
    return first_step(options, "gpt", options.backends[0], cache);
  };
  Json line;
  add(line, "compile", start_in(folder));
  add(line, "load", start_in(folder));
  export_folder(folder, bundle);
  cache::import_bundle(bundle, {.directory = imported});
  add(line, "bundle_load", start_in(imported));
  line["entry_bytes"] = bytes_of(cache::Kind::Entry, folder);
  line["artifact_bytes"] = bytes_of(cache::Kind::Artifact, folder);
  line["bundle_bytes"] = std::filesystem::file_size(bundle);
  if (options.json) {
    std::cout << line.dump() << std::endl;
    return;
  }
  std::cout << table({{"start", "cache", "compile or load s", "of it tracing", "loaded for the backward s",
                       "work"},
                      row("empty folder", line, "compile"),
                      row("same folder", line, "load"),
                      row("imported bundle", line, "bundle_load")})
            << "entry " << kilobytes(line["entry_bytes"]) << ", its code "
            << kilobytes(line["artifact_bytes"]) << ", bundle " << kilobytes(line["bundle_bytes"]) << "\n";
}

}  // namespace tandem::cli

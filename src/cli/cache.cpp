// The commands below `tandem cache`, and those that are about the folder as a whole, or about bundles.
#include "cache_command.h"
#include "commands.h"
#include "table.h"

#include <tandem/cache.h>

#include <CLI/CLI.hpp>

#include <iostream>
#include <set>

namespace tandem::cli {

namespace {

using cache::Kind;

std::string count_of(uint64_t number, const std::string& one, const std::string& many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

void print_stats(const CacheCommand& command) {
  const CacheOptions options = command.options();
  const cache::LocalStore store = open_store(options);
  const cache::LocalTotals totals = store.stats();
  double saves = 0;
  uint64_t damaged = 0;
  for (const cache::StoredFile& file : list_entries(store)) {
    try {
      saves += seconds_saved(read_entry(store, file.name).entry);
    } catch (const Error&) {
      ++damaged;
    }
  }
  if (command.json)
    return print({{"directory", options.directory.string()},
                  {"entries", totals.entries},
                  {"damaged_entries", damaged},
                  {"artifacts", totals.artifacts},
                  {"bytes", totals.bytes},
                  {"max_bytes", options.max_bytes},
                  {"saves_s", saves}});
  std::cout << options.directory.string() << "\n"
            << count_of(totals.entries, "entry", "entries")
            << (damaged ? ", " + std::to_string(damaged) + " damaged" : "") << "\n"
            << count_of(totals.artifacts, "artifact", "artifacts") << "\n"
            << megabytes(double(totals.bytes)) << " of " << megabytes(double(options.max_bytes)) << "\n"
            << "one hit of each entry saves " << duration(saves) << "\n";
}

/// What is wrong with a file whose frame is whole, as the end of a sentence.
std::string wrong_contents(const cache::LocalStore& store, const cache::StoredFile& file) {
  try {
    if (file.kind == Kind::Entry)
      read_entry(store, file.name);
    else if (const cache::Fetched fetched = store.look(file.kind, file.name);
             fetched.state == cache::Fetched::State::Found && sha256(fetched.payload) != file.name)
      return "holds other code than its name says";
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void verify(const CacheCommand& command) {
  const cache::LocalStore store = open_store(command.options());
  std::vector<cache::DamagedFile> damaged = store.verify();
  std::set<std::pair<Kind, std::string>> known;
  for (const cache::DamagedFile& file : damaged) known.emplace(file.kind, file.name);
  const std::vector<cache::StoredFile> files = store.list();
  for (const cache::StoredFile& file : files)
    if (!known.contains({file.kind, file.name}))
      if (std::string complaint = wrong_contents(store, file); !complaint.empty())
        damaged.push_back({file.kind, file.name, complaint});
  for (const auto& [kind, name, complaint] : damaged) {
    const std::string what = kind == Kind::Entry ? "entry" : "artifact";
    if (command.json)
      print({{"kind", what}, {"name", name}, {"complaint", complaint}});
    else
      std::cout << "The " << what << " " << name << " " << complaint << ".\n";
  }
  if (!command.json)
    std::cout << count_of(files.size(), "file was", "files were") << " opened, " << damaged.size()
              << " of them damaged.\n";
  if (!damaged.empty()) throw Exit{1};
}

void clear(const CacheCommand& command) {
  const CacheOptions options = command.options();
  const uint64_t removed = open_store(options).clear();
  if (command.json)
    print({{"directory", options.directory.string()}, {"removed", removed}});
  else
    std::cout << count_of(removed, "file", "files") << " removed from " << options.directory.string() << "\n";
}

/// An entry that nobody can read is not needed, nor is code that no other entry names.
std::set<std::pair<Kind, std::string>> needed_files(const cache::LocalStore& store) {
  std::set<std::pair<Kind, std::string>> needed;
  for (const cache::StoredFile& file : list_entries(store)) {
    try {
      const cache::StoredEntry entry = read_entry(store, file.name).entry;
      needed.emplace(Kind::Entry, file.name);
      for (const std::string& name : cache::artifacts_of(entry.first)) needed.emplace(Kind::Artifact, name);
    } catch (const Error&) {
    }
  }
  return needed;
}

void collect_garbage(const CacheCommand& command) {
  cache::LocalStore store = open_store(command.options());
  const auto needed = needed_files(store);
  const cache::Collected collected =
      store.gc([&](const cache::StoredFile& file) { return needed.contains({file.kind, file.name}); });
  if (command.json)
    return print({{"abandoned", collected.abandoned},
                  {"unneeded", collected.unneeded},
                  {"evicted", collected.evicted},
                  {"bytes", collected.bytes}});
  std::cout << "removed: " << count_of(collected.abandoned, "unfinished file", "unfinished files") << ", "
            << count_of(collected.unneeded, "file", "files") << " that nothing needs, "
            << count_of(collected.evicted, "file", "files") << " for room; "
            << megabytes(double(collected.bytes)) << "\n";
}

// ---- bundles

void export_entries(const CacheCommand& command) {
  const CacheOptions options = command.options();
  const cache::LocalStore store = open_store(options);
  std::vector<std::string> keys;
  for (const std::string& key : command.keys) keys.push_back(complete_key(store, key));
  if (command.keys.empty())
    for (const cache::StoredFile& file : list_entries(store)) keys.push_back(file.name);
  std::map<std::pair<Kind, std::string>, cache::BundleItem> items;
  for (const std::string& key : keys) {
    try {
      ReadEntry read = read_entry(store, key);
      for (const std::string& name : cache::artifacts_of(read.entry.first))
        if (cache::Fetched code = store.look(Kind::Artifact, name);
            code.state == cache::Fetched::State::Found)
          items[{Kind::Artifact, name}] = {Kind::Artifact, name, std::move(code.payload)};
      items[{Kind::Entry, key}] = {Kind::Entry, key, std::move(read.payload)};
    } catch (const Error& error) {
      std::cerr << "tandem: the entry " << key << " " << error.what() << "; it is left out\n";
    }
  }
  std::vector<cache::BundleItem> list;
  for (auto& [place, item] : items) list.push_back(std::move(item));
  cache::write_bundle(command.file, list, options.signing_key);
  const size_t entries = size_t(
      std::count_if(list.begin(), list.end(), [](const auto& item) { return item.kind == Kind::Entry; }));
  if (command.json)
    print({{"file", command.file.string()},
           {"entries", entries},
           {"artifacts", list.size() - entries},
           {"bytes", std::filesystem::file_size(command.file)}});
  else
    std::cout << count_of(entries, "entry", "entries") << " written to " << command.file.string() << "\n";
}

void import_entries(const CacheCommand& command) {
  const CacheOptions options = command.options();
  cache::import_bundle(command.file, options);
  const cache::LocalTotals totals = open_store(options).stats();
  if (command.json)
    print({{"directory", options.directory.string()},
           {"entries", totals.entries},
           {"artifacts", totals.artifacts},
           {"bytes", totals.bytes}});
  else
    std::cout << options.directory.string() << " has " << count_of(totals.entries, "entry", "entries")
              << " now\n";
}

}  // namespace

void add_cache(CLI::App& app) {
  auto command = std::make_shared<CacheCommand>();
  CLI::App* cache =
      app.add_subcommand("cache", "Looks at what the cache of compiled code holds, and looks after it");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, void (*run)(const CacheCommand&)) {
    CLI::App* added = cache->add_subcommand(name, what);
    added->add_option("--directory", command->directory,
                      "The cache's folder, where it is not the default one");
    added->add_flag("--json", command->json, "One JSON object a line");
    added->callback([command, run] { run(*command); });
    return added;
  };
  add("ls", "Lists the entries, most recently used first", print_entries);
  CLI::App* shown =
      add("show", "Prints one entry: its key's components, options, contract, sizes and what a hit saves",
          show_entry);
  shown->add_option("key", command->key, "Its key, or how that begins")->required();
  shown->add_flag("--graphs", command->graphs, "The graphs as well");
  add("stats", "Counts what is in the folder", print_stats);
  add("verify", "Opens every file; the exit status is 1 when one is damaged", verify);
  add("clear", "Removes every entry and artifact", clear);
  CLI::App* collected = add("gc",
                            "Removes what writers left unfinished, what nothing needs and, least recently "
                            "used first, what is too much",
                            collect_garbage);
  collected->add_option("--max-bytes", command->max_bytes, "What the folder may hold afterwards")
      ->capture_default_str();
  CLI::App* exported = add("export", "Writes entries and their code into one file", export_entries);
  exported->add_option("file", command->file, "The file to write")->required();
  exported->add_option("keys", command->keys,
                       "Their keys, or how those begin; all entries when none is given");
  add("import", "Puts what such a file holds into the folder", import_entries)
      ->add_option("file", command->file, "The file to read")
      ->required()
      ->check(CLI::ExistingFile);
}

}  // namespace tandem::cli

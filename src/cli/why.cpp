#include "bench.h"
#include "commands.h"
#include "stored.h"

#include <tandem/error.h>

#include <CLI/CLI.hpp>

#include <iostream>

namespace tandem::cli {

namespace {

struct WhyOptions {
  std::string first, second;
  std::filesystem::path directory;
  bool json = false;
};

cache::Components components_of(const cache::LocalStore& store, const std::string& key) {
  try {
    return read_entry(store, key).entry.components;
  } catch (const Error& error) {
    throw Error("the entry " + key + " " + error.what());
  }
}

std::vector<std::string> differing(const cache::Components& first, const cache::Components& second) {
  std::map<std::string, std::vector<std::string>> hashes;
  for (const cache::Components* components : {&first, &second})
    for (const cache::Component& component : *components) hashes[component.name].push_back(component.hash);
  std::vector<std::string> names;
  for (const auto& [name, found] : hashes)
    if (found.size() != 2 || found[0] != found[1]) names.push_back(name);
  return names;
}

}  // namespace

void add_why(CLI::App& app) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App* command = app.add_subcommand("why", "Says why two entries of the cache have different keys, down to the first line that differs");
  command->add_option("first", options->first, "The key of an entry, or how it begins")->required();
  command->add_option("second", options->second, "The key of another entry, or how it begins")->required();
  command->add_option("--directory", options->directory, "The cache's folder, where it is not the default one");
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] {
    const cache::LocalStore store = open_store(cache_at(options->directory));
    const std::string first = complete_key(store, options->first), second = complete_key(store, options->second);
    const cache::Components a = components_of(store, first), b = components_of(store, second);
    const std::string difference = cache::explain_difference(a, b);
    if (options->json) std::cout << Json{{"first", first}, {"second", second}, {"differing", differing(a, b)}, {"difference", difference}}.dump() << std::endl;
    else std::cout << (difference.empty() ? "The two keys are the same.\n" : difference);
  });
}

}  // namespace tandem::cli

#include "commands.h"
#include "events.h"
#include "stored.h"

#include <tandem/error.h>

#include <CLI/CLI.hpp>

#include <iostream>

namespace tandem::cli {

namespace {

struct WhyOptions {
  std::string first, second;
  std::filesystem::path directory, events;
  bool json = false;
};

struct Known {
  std::string key;
  cache::Components components;
};

Known in_folder(const cache::LocalStore& store, const std::string& beginning) {
  const std::string key = complete_key(store, beginning);
  try {
    return {key, read_entry(store, key).entry.components};
  } catch (const Error& error) {
    throw Error("the entry " + key + " " + error.what());
  }
}

/// In the file of events where there is one, else in the folder.
Known find_key(const WhyOptions& options, const std::string& beginning) {
  std::vector<Known> found;
  if (!options.events.empty())
    for (auto& [key, components] : components_in(options.events))
      if (key.starts_with(beginning)) found.push_back({key, components});
  if (found.size() > 1)
    throw Error("several keys in " + options.events.string() + " begin with " + beginning +
                "; write more of it");
  return found.empty() ? in_folder(open_store(cache_at(options.directory)), beginning) : found[0];
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
  CLI::App* command = app.add_subcommand(
      "why", "Says why two compiled functions have different keys, down to the first line that differs");
  command->add_option("first", options->first, "The key of an entry, or how it begins")->required();
  command->add_option("second", options->second, "The key of another entry, or how it begins")->required();
  command->add_option("--directory", options->directory,
                      "The cache's folder, where it is not the default one");
  command->add_option("--trace", options->events,
                      "A file of events (TANDEM_TRACE=file) in which to look for the keys first");
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] {
    const Known first = find_key(*options, options->first), second = find_key(*options, options->second);
    const cache::Components &a = first.components, &b = second.components;
    const std::string difference = cache::explain_difference(a, b);
    if (options->json)
      std::cout << Json{{"first", first.key},
                        {"second", second.key},
                        {"differing", differing(a, b)},
                        {"difference", difference}}
                       .dump()
                << std::endl;
    else
      std::cout << (difference.empty() ? "The two keys are the same.\n" : difference);
  });
}

}  // namespace tandem::cli

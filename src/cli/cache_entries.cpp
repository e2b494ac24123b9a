// `tandem cache ls` and `tandem cache show`: the entries of the folder, one by one.
#include "cache_command.h"
#include "table.h"

#include <ctime>
#include <iostream>
#include <map>

namespace tandem::cli {

namespace {

std::string utc(cache::Time time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time));
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// Those of an entry that are there, by name, each once.
std::map<std::string, uint64_t> artifact_sizes(const cache::LocalStore& store,
                                               const cache::StoredEntry& entry) {
  std::map<std::string, uint64_t> sizes;
  const std::vector<std::string> named = cache::artifacts_of(entry.first);
  for (const cache::StoredFile& file : store.list())
    if (file.kind == cache::Kind::Artifact && std::find(named.begin(), named.end(), file.name) != named.end())
      sizes[file.name] = file.bytes;
  return sizes;
}

using Graphs = std::vector<std::pair<std::string, const Graph*>>;

/// Every graph of an entry, with a title that says where it belongs.
void collect_graphs(const cache::StoredOrder& order, const std::string& prefix, Graphs& graphs) {
  graphs.emplace_back(prefix + "forward", &order.halves.forward);
  if (!order.halves.backward.empty()) graphs.emplace_back(prefix + "whole backward", &order.halves.backward);
  for (size_t i = 0; i < order.backwards.size(); ++i)
    graphs.emplace_back(prefix + "backward " + std::to_string(i), &order.backwards[i].graph_in(order.halves));
  for (size_t i = 0; i < order.above.size(); ++i)
    collect_graphs(order.above[i], prefix + "above " + std::to_string(i) + ": ", graphs);
}

void show_json(const std::string& key, const ReadEntry& read, const std::map<std::string, uint64_t>& sizes,
               const Graphs& graphs) {
  const cache::StoredEntry& entry = read.entry;
  Json components = Json::object(), artifacts = Json::array(), texts = Json::object();
  for (const cache::Component& component : entry.components) components[component.name] = component.hash;
  for (const std::string& name : cache::artifacts_of(entry.first))
    artifacts.push_back({{"name", name}, {"bytes", sizes.contains(name) ? Json(sizes.at(name)) : Json()}});
  for (const auto& [title, graph] : graphs) texts[title] = graph->to_string();
  Json line{{"key", key},
            {"backend", entry.backend},
            {"backend_version", entry.backend_version},
            {"nodes", entry.nodes_recorded},
            {"payload_bytes", read.payload.size()},
            {"artifacts", artifacts},
            {"eager_saved_bytes", entry.eager_saved_bytes},
            {"trace_s", entry.trace_seconds},
            {"compile_forward_s", entry.forward_seconds},
            {"compile_backward_s", entry.backward_seconds},
            {"saves_s", seconds_saved(entry)},
            {"components", components},
            {"options", entry.options},
            {"contract", entry.contract},
            {"machine", entry.machine}};
  if (!graphs.empty()) line["graphs"] = texts;
  print(line);
}

void show_text(const std::string& key, const ReadEntry& read, const std::map<std::string, uint64_t>& sizes,
               const Graphs& graphs) {
  const cache::StoredEntry& entry = read.entry;
  std::cout << "key " << key << "\n";
  for (const cache::Component& component : entry.components)
    std::cout << "  " << component.name << ": " << component.hash << "\n";
  std::cout << "\noptions\n"
            << entry.options << "\ncontract\n"
            << entry.contract << "\n\nmachine\n"
            << entry.machine << "\n";
  for (const auto& [title, graph] : graphs) std::cout << title << "\n" << graph->to_string() << "\n\n";
  std::vector<Row> rows = {{"", "this entry"},
                           {"backend", entry.backend + " " + entry.backend_version},
                           {"nodes recorded", std::to_string(entry.nodes_recorded)},
                           {"entry, uncompressed", kilobytes(double(read.payload.size()))}};
  for (const std::string& name : cache::artifacts_of(entry.first))
    rows.push_back({"code " + name.substr(0, 16),
                    sizes.contains(name) ? kilobytes(double(sizes.at(name))) : "not there"});
  rows.push_back({"a hit saves", duration(seconds_saved(entry))});
  rows.push_back({"  recording the backward", duration(entry.trace_seconds)});
  rows.push_back({"  compiling the forward", duration(entry.forward_seconds)});
  rows.push_back({"  compiling backwards", duration(entry.backward_seconds)});
  std::cout << table(rows);
}

}  // namespace

void print(const Json& object) { std::cout << object.dump() << std::endl; }

void print_entries(const CacheCommand& command) {
  const cache::LocalStore store = open_store(command.options());
  std::vector<Row> rows = {{"key", "backend", "nodes", "entry", "saves", "last used"}};
  for (const cache::StoredFile& file : list_entries(store)) {
    Json line{{"key", file.name}, {"bytes", file.bytes}, {"last_use", utc(file.last_use)}};
    try {
      const cache::StoredEntry entry = read_entry(store, file.name).entry;
      rows.push_back({file.name.substr(0, 16), entry.backend, std::to_string(entry.nodes_recorded),
                      kilobytes(double(file.bytes)), duration(seconds_saved(entry)), utc(file.last_use)});
      line.update({{"backend", entry.backend},
                   {"nodes", entry.nodes_recorded},
                   {"artifacts", cache::artifacts_of(entry.first).size()},
                   {"saves_s", seconds_saved(entry)},
                   {"damage", nullptr}});
    } catch (const Error& error) {
      rows.push_back(
          {file.name.substr(0, 16), "damaged", "-", kilobytes(double(file.bytes)), "-", utc(file.last_use)});
      line["damage"] = error.what();
    }
    if (command.json) print(line);
  }
  if (!command.json) std::cout << table(rows);
}

void show_entry(const CacheCommand& command) {
  const cache::LocalStore store = open_store(command.options());
  const std::string key = complete_key(store, command.key);
  Graphs graphs;
  try {
    const ReadEntry read = read_entry(store, key);
    if (command.graphs) collect_graphs(read.entry.first, "", graphs);
    (command.json ? show_json : show_text)(key, read, artifact_sizes(store, read.entry), graphs);
  } catch (const Error& error) {
    throw Error("the entry " + key + " " + error.what());
  }
}

}  // namespace tandem::cli

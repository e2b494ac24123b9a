#include "events.h"

#include "commands.h"

#include <tandem/error.h>

#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>

namespace tandem::cli {

namespace {

/// What a compile consists of, in the order in which it happens.
constexpr std::pair<const char*, const char*> phases[] = {
    {"trace_s", "trace"}, {"joint_s", "differentiate"}, {"forward_compile_s", "compile forward"}};

double microseconds(double seconds) { return seconds * 1e6; }

Json bar(const Json& event, const std::string& name, double start, double seconds, Json arguments) {
  return {{"name", name},
          {"cat", "tandem"},
          {"ph", "X"},
          {"ts", microseconds(start)},
          {"dur", microseconds(seconds)},
          {"pid", event["process"]},
          {"tid", event["thread"]},
          {"args", std::move(arguments)}};
}

/// Texts of components are for `tandem why`, graphs for people.
Json shown_arguments(const Json& event) {
  Json arguments = event;
  for (const char* name : {"event", "time", "process", "thread", "components", "text"}) arguments.erase(name);
  return arguments;
}

std::string title(const Json& event) {
  const std::string name = event.value("name", ""), state = event.value("state", "");
  return std::string(event["event"]) + (name.empty() ? "" : " " + name) +
         (state.empty() ? "" : " (" + state + ")");
}

void add_bars(const Json& event, Json& shown) {
  double start = double(event["time"]) - double(event["seconds"]);
  shown.push_back(bar(event, title(event), start, event["seconds"], shown_arguments(event)));
  for (const auto& [field, name] : phases) {
    const double seconds = event.value(field, 0.0);
    if (seconds > 0) shown.push_back(bar(event, name, start, seconds, Json::object()));
    start += seconds;
  }
}

struct TraceOptions {
  std::filesystem::path input, output;
};

void convert(const TraceOptions& options) {
  const std::string text = chrome_trace(read_events(options.input)).dump();
  if (options.output.empty()) {
    std::cout << text << std::endl;
    return;
  }
  std::ofstream file(options.output);
  file << text << std::endl;
  if (!file) throw Error(options.output.string() + " cannot be written");
}

}  // namespace

std::vector<Json> read_events(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw Error(path.string() + " cannot be read");
  std::vector<Json> events;
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    // A process may have died in the middle of its last one.
    if (file.eof()) break;
    const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    auto lacks = [&](const char* field) { return !event.contains(field); };
    if (!event.is_object() || lacks("event") || lacks("time") || lacks("process") || lacks("thread") ||
        lacks("key"))
      throw Error(path.string() + ": line " + std::to_string(number) + " is no event");
    events.push_back(event);
  }
  return events;
}

std::map<std::string, cache::Components> components_in(const std::filesystem::path& path) {
  std::map<std::string, cache::Components> found;
  for (const Json& event : read_events(path)) {
    if (!event.contains("components") || !event["key"].is_string()) continue;
    cache::Components& components = found[event["key"]];
    components.clear();
    for (const auto& [name, one] : event["components"].items())
      components.push_back({name, one["hash"], one["text"]});
  }
  return found;
}

Json chrome_trace(const std::vector<Json>& events) {
  Json shown = Json::array();
  for (const Json& event : events) {
    if (event.contains("seconds"))
      add_bars(event, shown);
    else
      shown.push_back({{"name", title(event)},
                       {"cat", "tandem"},
                       {"ph", "i"},
                       {"s", "t"},
                       {"ts", microseconds(event["time"])},
                       {"pid", event["process"]},
                       {"tid", event["thread"]},
                       {"args", shown_arguments(event)}});
  }
  return {{"traceEvents", shown}, {"displayTimeUnit", "ms"}};
}

void add_trace(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand(
      "trace", "Makes of a file of events (TANDEM_TRACE=file) what chrome://tracing and Perfetto show");
  command->add_option("file", options->input, "The file of events")->required();
  command->add_option("-o,--output", options->output, "Where to write it, instead of to the terminal");
  command->callback([options] { convert(*options); });
}

}  // namespace tandem::cli

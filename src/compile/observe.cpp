#include "compile/observe.h"

#include <tandem/backend.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/events.h"
#include "base/log.h"

namespace tandem {
namespace {

/// The word of TANDEM_LOGS for it; none for what is not logged.
const char* topic_of(std::string_view what) {
  if (what == "trace") return nullptr;
  return what == "joint" ? "joint" : what == "contract" ? "contract" : "graphs";
}

std::string title(const Sight& sight) {
  const std::string_view what = sight.what;
  if (what == "contract") return sight.name;
  if (what == "joint") return sight.name + (sight.order > 1 ? " order " + std::to_string(sight.order) : "");
  return sight.name + " " + (sight.order > 1 ? "higher_order" : sight.what);
}

const std::string& dump_folder() {
  static const std::string folder = std::getenv("TANDEM_DUMP") ? std::getenv("TANDEM_DUMP") : "";
  return folder;
}

/// "name-0.signature-0.order-2.variant-1.backward."; what a file name cannot hold of a name becomes '_'.
std::string beginning_of_file_name(const Sight& sight) {
  std::string file = sight.name.empty() ? "function" : sight.name;
  for (char& c : file)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  file += "-" + std::to_string(sight.function) + ".signature-" + std::to_string(sight.signature);
  if (sight.order > 1) file += ".order-" + std::to_string(sight.order);
  if (sight.variant > 0) file += ".variant-" + std::to_string(sight.variant);
  return file + "." + sight.what + ".";
}

void dump(const Sight& sight, const std::string& ending, const std::string& text) {
  static std::atomic<bool> works = true;
  const std::string path = dump_folder() + "/" + beginning_of_file_name(sight) + ending;
  if (works && !(std::ofstream(path) << text << std::flush) && works.exchange(false))
    warn("TANDEM_DUMP: " + path + " cannot be written; nothing is dumped");
}

void show(const Sight& sight, const std::string& text) {
  if (const char* topic = topic_of(sight.what); topic && logs(topic)) log(topic, title(sight) + "\n" + text);
  if (!dump_folder().empty()) dump(sight, "txt", text);
  if (writes_events())
    write_event("graph", {{"name", sight.name},
                          {"graph", sight.function},
                          {"key", nullptr},
                          {"signature", sight.signature},
                          {"order", sight.order},
                          {"variant", sight.variant},
                          {"what", sight.what},
                          {"text", text}});
}

}  // namespace

bool is_observed(const char* what) {
  const char* topic = topic_of(what);
  return (topic && logs(topic)) || !dump_folder().empty() || writes_events();
}

void observe(const Sight& sight, const Graph& graph) {
  if (is_observed(sight.what)) show(sight, graph.to_string());
}

void observe(const Sight& sight, const Contract& contract) {
  if (is_observed(sight.what)) show(sight, contract.to_string());
}

void observe(const Sight& sight, const Executable& code) {
  if (dump_folder().empty()) return;
  for (const auto& [ending, text] : code.listings()) dump(sight, ending, text);
}

}  // namespace tandem

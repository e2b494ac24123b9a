#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <set>
#include <sstream>

namespace tandem {

namespace {

/// What TANDEM_LOGS asked for. A level without topics means every topic, as does the topic "all".
struct Listening {
  std::set<std::string, std::less<>> topics;
  spdlog::level::level_enum level = spdlog::level::info;
  bool every_topic = false;

  bool hears(const char* topic, spdlog::level::level_enum at) const { return level <= at && (every_topic || topics.contains(topic)); }
};

bool is_level(const std::string& word) { return word == "off" || spdlog::level::from_str(word) != spdlog::level::off; }

Listening parse_listening(const char* setting) {
  Listening listening;
  bool names_level = false;
  std::istringstream words(setting ? setting : "");
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    if (is_level(word)) {
      listening.level = spdlog::level::from_str(word);
      names_level = true;
    } else if (!word.empty()) {
      listening.topics.insert(word);
    }
  }
  listening.every_topic = listening.topics.contains("all") || (names_level && listening.topics.empty());
  return listening;
}

const Listening& listening() {
  // Never destroyed: threads may still log while the process ends.
  static const Listening& settings = *new Listening(parse_listening(std::getenv("TANDEM_LOGS")));
  return settings;
}

spdlog::logger& logger() {
  // Kept out of spdlog's registry, which belongs to the host program.
  static spdlog::logger& instance = [&]() -> spdlog::logger& {
    auto& made = *new spdlog::logger("tandem", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("[%n %H:%M:%S.%e] %v");
    made.set_level(listening().level);
    return made;
  }();
  return instance;
}

}  // namespace

bool logs(const char* topic) { return listening().hears(topic, spdlog::level::info); }
bool logs_details(const char* topic) { return listening().hears(topic, spdlog::level::debug); }

void log(const char* topic, const std::string& message) {
  if (logs(topic)) logger().info("{}: {}", topic, message);
}

void log_details(const char* topic, const std::string& message) {
  if (logs_details(topic)) logger().debug("{}: {}", topic, message);
}

void warn(const std::string& message) { logger().warn("warning: {}", message); }

}  // namespace tandem

#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

namespace tandem {

namespace {

constexpr std::string_view known_topics[] = {"all",   "cache", "compile",   "contract", "graphs",
                                             "joint", "loops", "signature", "trace"};

/// What TANDEM_LOGS asked for. A level without topics means every topic, as does the topic "all".
struct Listening {
  std::set<std::string, std::less<>> topics;
  spdlog::level::level_enum level = spdlog::level::info;
  bool every_topic = false;
  std::string unknown;  ///< words that are neither topics nor levels

  bool hears(const char* topic, spdlog::level::level_enum at) const {
    return level <= at && (every_topic || topics.contains(topic));
  }
};

bool is_level(const std::string& word) {
  return word == "off" || spdlog::level::from_str(word) != spdlog::level::off;
}

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
      if (std::find(std::begin(known_topics), std::end(known_topics), word) == std::end(known_topics))
        listening.unknown += " " + word;
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

/// A word that was mistyped would only be silent.
bool tell_unknown_words() {
  if (listening().unknown.empty()) return false;
  std::string topics;
  for (std::string_view topic : known_topics) topics += (topics.empty() ? "" : ", ") + std::string(topic);
  logger().warn(
      "warning: TANDEM_LOGS has words that mean nothing:{}; topics are {}, and levels debug, info, warning, "
      "error, off",
      listening().unknown, topics);
  return true;
}

bool hears(const char* topic, spdlog::level::level_enum level) {
  static const bool told = tell_unknown_words();
  static_cast<void>(told);
  return listening().hears(topic, level);
}

}  // namespace

bool logs(const char* topic) { return hears(topic, spdlog::level::info); }
bool logs_details(const char* topic) { return hears(topic, spdlog::level::debug); }

void log(const char* topic, const std::string& message) {
  if (logs(topic)) logger().info("{}: {}", topic, message);
}

void log_details(const char* topic, const std::string& message) {
  if (logs_details(topic)) logger().debug("{}: {}", topic, message);
}

void say(const std::string& message) { logger().info("{}", message); }

void warn(const std::string& message) { logger().warn("warning: {}", message); }

}  // namespace tandem

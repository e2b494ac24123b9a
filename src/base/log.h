/// Logging by topic, asked for with TANDEM_LOGS=topic,topic,...[,level]; warnings always show.
#pragma once

#include <string>

#include "base/for_python.h"

namespace tandem {

/// Whether anybody listens: build long messages only then.
TANDEM_FOR_PYTHON bool logs(const char* topic);
/// One message under a topic, at level info; nothing when nobody listens.
TANDEM_FOR_PYTHON void log(const char* topic, const std::string& message);
/// The same at level debug: what only somebody who looks for something specific wants to read.
bool logs_details(const char* topic);
void log_details(const char* topic, const std::string& message);
/// One line on what takes long or is not as one may expect, shown unless TANDEM_LOGS has a level above info.
void say(const std::string& message);
/// One warning, shown unless TANDEM_LOGS has the level "error" or "off".
TANDEM_FOR_PYTHON void warn(const std::string& message);

}  // namespace tandem

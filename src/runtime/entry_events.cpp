// What compiling one signature tells those who read events.
#include "base/events.h"
#include "runtime/entry.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json described(const cache::Components& components) {
  Json all = Json::object();
  for (const cache::Component& component : components)
    all[component.name] = {{"hash", component.hash}, {"text", component.text}};
  return all;
}

}  // namespace

void Entry::tell_compiled(double seconds) const {
  if (!writes_events()) return;
  Json used = Json::array();
  for (const auto& wrapper : wrappers) used.push_back(wrapper->name());
  const auto& hit = remembered_.hit();
  Json fields = {{"name", compilation_.options.name},
                 {"graph", function_},
                 {"key", text_or_null(remembered_.fingerprint().key)},
                 {"state", remembered_.state()},
                 {"level", hit ? Json(hit->remote ? "remote" : "local") : Json()},
                 {"asked", remembered_.asked()},
                 {"bypass_reason", text_or_null(remembered_.reason())},
                 {"unexpected", remembered_.is_unexpected()},
                 {"eager_reason", text_or_null(eager_reason)},
                 {"backend", compilation_.options.backend},
                 {"mode", !eager_reason.empty() ? "eager"
                          : trains              ? "training"
                                                : "inference"},
                 {"wrappers", used},
                 {"seconds", seconds},
                 {"trace_s", compilation_.times.trace - (hit ? 0 : compilation_.times.joint)},
                 {"joint_s", hit ? 0 : compilation_.times.joint},
                 {"compile_s", compilation_.times.compile},
                 {"forward_compile_s", hit ? 0 : compilation_.times.forward},
                 {"nodes", nodes_recorded_},
                 {"saved_bytes", saved_bytes()}};
  if (hit)
    fields.update({{"joint_saved_s", compilation_.times.joint},
                   {"forward_saved_s", compilation_.times.forward},
                   {"backward_saved_s", compilation_.times.backward},
                   {"entry_bytes", hit->entry_bytes},
                   {"artifact_bytes", hit->artifact_bytes}});
  const auto& components = remembered_.fingerprint().components;
  const auto& tracer = compilation_.traced.tracer;
  fields["components"] = described(tracer ? readable(components, tracer->graph()) : components);
  write_event("compile", fields);
}

void Entry::tell_backward(const char* what, size_t order, double seconds) const {
  if (!writes_events()) return;
  write_event(what, {{"name", compilation_.options.name},
                     {"graph", function_},
                     {"key", text_or_null(remembered_.fingerprint().key)},
                     {"backend", compilation_.options.backend},
                     {"order", order},
                     {"seconds", seconds}});
}

}  // namespace tandem

// What compiling one signature tells those who read events.
#include "base/events.h"
#include "runtime/entry.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json described(const cache::Components& components) {
  Json all = Json::object();
  for (const cache::Component& component : components) all[component.name] = {{"hash", component.hash}, {"text", component.text}};
  return all;
}

}  // namespace

void Entry::tell_compiled(double seconds) const {
  if (!writes_events()) return;
  Json used = Json::array();
  for (const auto& wrapper : wrappers) used.push_back(wrapper->name());
  const auto& hit = remembered_.hit();
  Json fields = {{"name", options_.name},
                 {"graph", graph_id_},
                 {"key", text_or_null(remembered_.fingerprint().key)},
                 {"state", remembered_.state()},
                 {"level", hit ? Json(hit->remote ? "remote" : "local") : Json()},
                 {"bypass_reason", text_or_null(remembered_.reason())},
                 {"unexpected", remembered_.is_unexpected()},
                 {"eager_reason", text_or_null(eager_reason)},
                 {"backend", options_.backend},
                 {"mode", !eager_reason.empty() ? "eager" : trains ? "training" : "inference"},
                 {"wrappers", used},
                 {"seconds", seconds},
                 {"trace_s", trace_seconds_ - (hit ? 0 : joint_seconds_)},
                 {"joint_s", hit ? 0 : joint_seconds_},
                 {"compile_s", compile_seconds_},
                 {"forward_compile_s", hit ? 0 : forward_seconds_},
                 {"nodes", nodes_recorded_},
                 {"saved_bytes", saved_bytes_}};
  if (hit)
    fields.update({{"joint_saved_s", joint_seconds_},
                   {"forward_saved_s", forward_seconds_},
                   {"backward_saved_s", backward_seconds_},
                   {"entry_bytes", hit->entry_bytes},
                   {"artifact_bytes", hit->artifact_bytes}});
  fields["components"] = described(remembered_.fingerprint().components);
  write_event("compile", fields);
}

void Entry::tell_backward(const char* what, size_t order, double seconds) const {
  if (!writes_events()) return;
  write_event(what, {{"name", options_.name}, {"graph", graph_id_}, {"key", text_or_null(remembered_.fingerprint().key)}, {"backend", options_.backend}, {"order", order}, {"seconds", seconds}});
}

}  // namespace tandem

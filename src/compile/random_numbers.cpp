#include "compile/random_numbers.h"

#include <algorithm>

#include "base/log.h"
#include "graph/draws.h"
#include "key/named_code.h"
#include "passes/counter_numbers.h"

namespace tandem {
namespace {

size_t draws_of(const Traced& traced) {
  const auto& nodes = traced.tracer->graph().nodes();
  return size_t(std::count_if(nodes.begin(), nodes.begin() + int64_t(traced.forward_nodes), draws_live));
}

void say_what_is_left(const std::vector<std::string>& left, Compilation& compilation) {
  if (left.empty() || std::exchange(compilation.has_said_what_is_left, true)) return;
  std::string names;
  for (const std::string& name : left) names += (names.empty() ? "" : ", ") + name;
  log("compile", compilation.options.name + ": random numbers of libtorch's generator are drawn by " + names);
}

}  // namespace

bool draws_counter_numbers(const Compilation& compilation) {
  return wants_counter_numbers(compilation.options) && draws_of(compilation.traced) > 0;
}

Graph with_wanted_numbers(Graph joint, Compilation& compilation) {
  if (!draws_counter_numbers(compilation)) return joint;
  Counted counted = with_counter_numbers(std::move(joint), draws_of(compilation.traced));
  say_what_is_left(counted.left, compilation);
  return std::move(counted.graph);
}

}  // namespace tandem

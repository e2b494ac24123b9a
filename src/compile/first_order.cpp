#include "compile/first_order.h"

#include "trace/refuse.h"

namespace tandem {
namespace {

/// Asked where libtorch refuses all of them together.
bool some_gradient_exists(Compilation& compilation, const Order& order) {
  constexpr size_t most_attempts = 512;
  if (order.sources.size() * order.leaves.size() > most_attempts) return true;
  // Asked for what nothing leads to, eager refuses nothing.
  if (std::any_of(order.parts.begin(), order.parts.end(),
                  [](const OrderPart& part) { return !part.beyond.empty(); }))
    return true;
  const BackwardVariant all = expected_variant(order);
  for (size_t s = 0; s < order.sources.size(); ++s)
    for (size_t l = 0; l < order.leaves.size(); ++l) {
      BackwardVariant one{std::vector<std::optional<Tangent>>(order.sources.size()),
                          std::vector<bool>(order.leaves.size())};
      one.tangents[s] = all.tangents[s];
      one.wanted[l] = true;
      try {
        make_joint_graph(compilation.traced, compilation.plan, order, one);
        return true;
      } catch (const UnsupportedError&) {
        return true;
      } catch (const std::exception&) {
      }
    }
  return false;
}

}  // namespace

std::optional<JointGraph> differentiate_first(Compilation& compilation, std::exception_ptr& refused) {
  const Order& order = compilation.first;
  try {
    double seconds = 0;
    std::optional<JointGraph> joint;
    {
      Stopwatch watch(seconds);
      joint = make_joint_graph(compilation.traced, compilation.plan, order, expected_variant(order));
    }
    const double recording = joint ? joint->record_seconds : seconds;
    compilation.times.trace += recording;
    compilation.times.joint += recording;
    compilation.times.compile += seconds - recording;
    return joint;
  } catch (const UnsupportedError& reason) {
    throw RunEagerly(std::string("its backward cannot be compiled: ") + reason.what());
  } catch (const c10::Error& reason) {
    // Eager refuses only those gradients that read what was written or used up.
    if (some_gradient_exists(compilation, order))
      throw RunEagerly(std::string("libtorch refuses a part of its gradients: ") + reason.what());
    refused = std::current_exception();
    return std::nullopt;
  } catch (const std::exception& reason) {
    // The user's own code, of which eager may ask something else.
    if (asks_for_data(reason.what()))
      throw RunEagerly(
          "a backward of its own reads the memory of a tensor, by tolist() or numpy() for one, which has no "
          "data while it is traced");
    throw RunEagerly(std::string("its backward cannot be traced: ") + reason.what());
  }
}

}  // namespace tandem

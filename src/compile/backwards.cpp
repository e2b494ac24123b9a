// The backwards of one order: which saved values each part of them reads, and their code.
#include "compile/derivative.h"

#include <tandem/passes.h>

#include <numeric>
#include <set>

#include "base/counters.h"
#include "base/log.h"
#include "key/named_code.h"
#include "ops/facts.h"
#include "passes/standard.h"

namespace tandem {

bool has_fickle_backward(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return facts(node.op).fickle_backward; });
}

std::vector<int64_t> positions(const std::vector<bool>& wanted, const Graph& graph) {
  std::vector<int64_t> found;
  size_t next = 0;
  for (bool asked : wanted) {
    found.push_back(asked && graph.outputs()[next] ? int64_t(next) : -1);
    next += asked;
  }
  return found;
}

Kept Derivative::kept(size_t part) const {
  std::shared_ptr<Kept> before =
      below_ ? std::make_shared<Kept>(below_->kept(part_of(below_->parts_, record_.variant))) : nullptr;
  return {joint(),       record_.halves.saved, record_.halves.forward,
          record_.taken, std::move(before),    held_.empty() ? nullptr : &held_[part]};
}

/// Each node keeps what its own backwards read; what none of the expected ones reads is there for others of
/// any part.
void Derivative::find_held() {
  std::vector<size_t> all(saved_count());
  std::iota(all.begin(), all.end(), size_t(0));
  held_.assign(parts_.size(), all);
  if (parts_.size() <= 1 || record_.halves.backward.empty() || has_fickle_backward(record_.halves.forward) ||
      compilation_.traced.tracer->met_zeros())
    return;
  std::vector<std::vector<size_t>> read;
  std::set<size_t> read_by_any;
  for (const OrderPart& part : parts_) {
    read.push_back(backward_of(part, record_.halves).saved);
    read_by_any.insert(read.back().begin(), read.back().end());
  }
  for (size_t p = 0; p < parts_.size(); ++p)
    std::erase_if(held_[p], [&](size_t s) {
      return read_by_any.count(s) && !std::binary_search(read[p].begin(), read[p].end(), s);
    });
}

void Derivative::find_leftovers() {
  const Order& first = compilation_.first;
  leftovers_.emplace(saving_nodes(*compilation_.traced.tracer, first.sources, first.leaves),
                     record_.halves.backward, saved_count());
}

std::vector<size_t> Derivative::given_up(const std::vector<Between>& done, const std::vector<size_t>& saved,
                                         size_t part) const {
  return leftovers_ ? leftovers_->unreadable(done, saved, parts_[part]) : saved;
}

std::shared_ptr<const BackwardCode> Derivative::backward(const BackwardVariant& asked) {
  if (auto known = backwards_.find(asked)) return known;
  std::lock_guard lock(compilation_.mutex);
  if (error_) std::rethrow_exception(error_);
  open();
  if (auto known = backwards_.find(asked)) return known;
  double seconds = 0;
  std::shared_ptr<BackwardCode> made;
  {
    Stopwatch watch(compilation_.times.compile), own(compilation_.times.backward), here(seconds);
    made = std::make_shared<BackwardCode>(compile_backward(asked));
    compile_other_parts(asked);
  }
  if (backwards_.add(made)) say_that_one_went("backwards", most_backwards);
  compilation_.added("backward", number_, seconds);
  return made;
}

/// A backward mostly goes on to the other parts, so what is expected of them is compiled and stored with it.
void Derivative::compile_other_parts(const BackwardVariant& asked) {
  const size_t number = part_of(parts_, asked);
  if (parts_.size() == 1 || asked != expected_of(parts_[number], record_.expected)) return;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const BackwardVariant expected = expected_of(parts_[p], record_.expected);
    if (p == number || parts_[p].leaves == 0 || backwards_.find(expected)) continue;
    try {
      backwards_.add(std::make_shared<BackwardCode>(compile_backward(expected)));
    } catch (const std::exception&) {
      // It says so when it is asked for.
    }
  }
}

void Derivative::say_that_one_went(const char* what, size_t most) const {
  count("backward_evicted");
  if (std::exchange(compilation_.said_that_one_went, true)) return;
  const std::string& name = compilation_.options.name;
  warn((name.empty() ? "a function" : name) + ": more than " + std::to_string(most) + " " + what +
       " of one signature, since other gradients are asked for, or gradients of other layouts arrive, each " +
       "time; the least recently used goes, and is compiled again when it is asked for");
}

Graph Derivative::expected_backward() {
  Graph only;
  for (const OrderPart& part : parts_)
    only = backward(expected_of(part, record_.expected))->graph_in(record_.halves);
  return parts_.size() == 1 ? only : record_.halves.backward;
}

std::vector<KernelInfo> Derivative::expected_kernels() {
  std::vector<KernelInfo> found;
  auto add = [&](const Executable& code, const Graph& graph, Stage stage) {
    for (KernelInfo& kernel : code.kernels(graph)) {
      kernel.stage = stage;
      found.push_back(std::move(kernel));
    }
  };
  add(*forward, record_.halves.forward, forward_place().stage);
  if (forward_place().stage != Stage::Forward) return found;
  for (const OrderPart& part : parts_) {
    const auto code = backward(expected_of(part, record_.expected));
    add(*code->code, code->graph_in(record_.halves), Stage::Backward);
  }
  return found;
}

PartBackward Derivative::expected_backward(size_t part) const {
  if (parts_.size() > 1) return backward_of(parts_[part], record_.halves);
  return {record_.halves.backward, held_[0]};
}

BackwardCode Derivative::compile_backward(const BackwardVariant& asked) {
  BackwardCode code;
  Graph graph;
  code.variant = asked;
  const size_t number = part_of(parts_, asked);
  std::optional<PartBackward> expected;
  if (record_.has_expected && asked == expected_of(parts_[number], record_.expected))
    expected = expected_backward(number);
  if (expected && expected->stands_alone) {
    graph = std::move(expected->graph);
    code.saved = std::move(expected->saved);
  } else {
    count("backward_variant");
    JointGraph other = compilation_.recorded(
        [&] { return make_joint_graph(compilation_.traced, compilation_.plan, order(), asked); });
    Extracted extracted = extract_backward(
        with_passes(std::move(other.joint), below_ ? &below_->joint() : nullptr), kept(number));
    graph =
        narrowing() ? without_detours(std::move(extracted.joint.graph)) : std::move(extracted.joint.graph);
    code.saved = std::move(extracted.saved);
  }
  graph = run_passes(std::move(graph), wanted_passes(compilation_.options, Stage::Backward));
  code.gradients = positions(asked.wanted, graph);
  code.given_up = given_up({asked_of(asked)}, code.saved, number);
  code.code = compilation_.toolchain.compile(graph, backward_place(code.saved, backwards_.added()));
  code.graph = std::move(graph);
  return code;
}

}  // namespace tandem

#include "backends/side_by_side.h"

#include <torch/library.h>

#include <algorithm>

#include "backends/products.h"
#include "graph/uses.h"
#include "partition/cost_model.h"

namespace tandem {

// Only a graph that `fuse` made calls it, and its interpreter has a call of its own for it.
TORCH_LIBRARY_FRAGMENT(tandem, library) {
  library.def("side_by_side(Tensor[] tensors, int number) -> Tensor[]");
}

const c10::OperatorHandle& side_by_side_operator() {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("tandem::side_by_side", "");
  return op;
}

namespace {

// In nanoseconds, on a machine of middling speed: what a product loses by its threads, and what threads take
// to begin and end once.
constexpr double flops_of_thread = 64, of_sharing = 8000, of_beginning = 3000;

struct Product {
  int32_t node;
  double alone;  ///< nanoseconds on one thread
};

class Finder {
 public:
  Finder(Graph graph, int64_t threads, std::vector<SideBySide>& found)
      : graph_(std::move(graph)),
        nodes_(std::exchange(graph_.nodes(), {})),
        threads_(threads),
        found_(found),
        makers_(graph_.value_count(), no_node),
        place_(nodes_.size()),
        products_(nodes_.size()) {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      place_[n] = int32_t(n);
      products_[n] = is_product(graph_, nodes_[n]);
      for_each_result(nodes_[n], [&](Value v) { makers_[v.id] = int32_t(n); });
    }
  }

  Graph run() {
    for (size_t n = 0; n < place_.size(); ++n) {
      if (place_[n] != int32_t(n)) continue;  // moved up to another
      const std::vector<Product> together = products_[n] ? with(int32_t(n)) : std::vector<Product>();
      if (together.size() < 2) {
        graph_.add_node(std::move(nodes_[n]));
        continue;
      }
      for (const Product& product : together) place_[size_t(product.node)] = int32_t(n);
      graph_.add_node(call_of(together));
    }
    return std::move(graph_);
  }

 private:
  /// This product and those behind it, as many as run in the least time beside it.
  std::vector<Product> with(int32_t first) const {
    constexpr int32_t looked_at = 64;
    std::vector<Product> candidates;
    const auto end = std::min(int32_t(place_.size()), first + looked_at);
    for (int32_t n = first + 1; n < end; ++n)
      if (products_[size_t(n)] && place_[size_t(n)] == n && may_move(n, first))
        candidates.push_back(product(n));
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Product& a, const Product& b) { return a.alone > b.alone; });
    return most_saving(product(first), candidates);
  }

  /// One after the other takes the time of all and their sharing; side by side that of the longest.
  std::vector<Product> most_saving(Product first, const std::vector<Product>& candidates) const {
    constexpr double worth_it = 0.05;  // of the time
    std::vector<Product> best, tried = {first};
    double longest = first.alone, apart = shared(first), saved = 0;
    for (const Product& candidate : candidates) {
      if (int64_t(tried.size()) == threads_) break;
      if (candidate.alone > 2 * first.alone) continue;
      tried.push_back(candidate);
      longest = std::max(longest, candidate.alone);
      apart += shared(candidate);
      const double saving = apart - longest - of_beginning;
      if (saving <= saved || saving < worth_it * apart) continue;
      saved = saving;
      best = tried;
    }
    return best;
  }

  double shared(const Product& product) const { return product.alone / double(threads_) + of_sharing; }

  Product product(int32_t node) const {
    return {node, flops(graph_, nodes_[size_t(node)]) / flops_of_thread};
  }

  /// What it reads is there by then. Nobody writes that in between: in the graphs that are compiled a tensor
  /// that is written is another value afterwards.
  bool may_move(int32_t node, int32_t up_to) const {
    bool may = true;
    for_each_argument(nodes_[size_t(node)], [&](Value v) {
      const int32_t maker = makers_[v.id];
      may = may && (maker == no_node || place_[size_t(maker)] < up_to);
    });
    return may;
  }

  Node call_of(const std::vector<Product>& products) {
    std::vector<Value> read, made;
    SideBySide side_by_side;
    for (const Product& product : products)
      side_by_side.push_back(alone(std::move(nodes_[size_t(product.node)]), read, made));
    Node call{side_by_side_operator()};
    call.arguments = {std::move(read), c10::IValue(int64_t(found_.size()))};
    call.results = {std::move(made)};
    found_.push_back(std::move(side_by_side));
    return call;
  }

  /// A graph of this node; what it reads and makes is added to the lists.
  Graph alone(Node node, std::vector<Value>& read, std::vector<Value>& made) const {
    Graph result;
    map_arguments(node, [&](Value v) {
      read.push_back(v);
      return result.add_input(graph_.meta(v));
    });
    const Value own = std::get<Value>(node.results[0]);
    made.push_back(own);
    const Value output = result.add_value(graph_.meta(own));
    node.results[0] = output;
    result.add_node(std::move(node));
    result.set_outputs({output});
    return result;
  }

  Graph graph_;
  std::vector<Node> nodes_;
  const int64_t threads_;
  std::vector<SideBySide>& found_;
  std::vector<int32_t> makers_;  ///< of each value
  std::vector<int32_t> place_;   ///< of each node: its own, or that of the one it was moved up to
  std::vector<bool> products_;
};

}  // namespace

Graph put_side_by_side(Graph graph, int64_t threads, std::vector<SideBySide>& found) {
  return threads < 2 ? graph : Finder(std::move(graph), threads, found).run();
}

}  // namespace tandem

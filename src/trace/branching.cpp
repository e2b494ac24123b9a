#include "trace/branching.h"

#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <typeindex>

#include "base/history.h"
#include "trace/failure.h"
#include "trace/saved_hooks.h"
#include "trace/tracer.h"
#include "trace/way.h"

namespace tandem {
namespace {

using namespace torch::autograd::generated;
using torch::autograd::edge_list;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::autograd::impl::gradient_edge;
using GradNode = torch::autograd::Node;

/// What we know of a formula: what it asks, and where its node keeps tensors.
struct Formula {
  Question question;
  std::vector<SavedVariable*> (*saved)(GradNode&);
  /// throws NoNextOrder for sizes at which it is too long where its result is differentiated in turn
  void (*refuse_next_order)(GradNode&) = nullptr;
  /// of complex numbers the ways round otherwise than libtorch's
  bool real_alone = false;
  /// only where another formula calls it: sums are associated otherwise than libtorch's
  bool within_others = false;
  size_t ways() const { return question == Question::HowManyZeros ? 3 : 2; }
};

template <class Of, SavedVariable Of::*... places>
std::vector<SavedVariable*> saved_by(GradNode& node) {
  return {&(static_cast<Of&>(node).*places)...};
}

/// libtorch's formula is one loop over the elements then, with loops over the elements before and behind
/// inside.
void refuse_long_loops(GradNode& node) {
  constexpr int64_t longest = 32;
  auto& cumprod = static_cast<CumprodBackward0&>(node);
  const at::Tensor self = cumprod.self_.unpack();
  if (self.dim() == 0 || self.size(cumprod.dim) <= longest) return;
  refuse<NoNextOrder>("cumprod over more than " + std::to_string(longest) +
                      " elements has no second derivative that can be compiled");
}

const Formula* find_formula(const GradNode& node) {
  static const std::unordered_map<std::type_index, Formula> formulas = {
      {typeid(MaxBackward1),
       {Question::IsZero, saved_by<MaxBackward1, &MaxBackward1::self_, &MaxBackward1::result_>}},
      {typeid(MinBackward1),
       {Question::IsZero, saved_by<MinBackward1, &MinBackward1::self_, &MinBackward1::result_>}},
      {typeid(MedianBackward0),
       {Question::IsZero, saved_by<MedianBackward0, &MedianBackward0::self_, &MedianBackward0::result_>}},
      {typeid(NanmedianBackward0),
       {Question::IsZero,
        saved_by<NanmedianBackward0, &NanmedianBackward0::self_, &NanmedianBackward0::result_>}},
      {typeid(ProdBackward0),
       {Question::HowManyZeros, saved_by<ProdBackward0, &ProdBackward0::self_, &ProdBackward0::result_>}},
      {typeid(ProdBackward1),
       {Question::IsZero, saved_by<ProdBackward1, &ProdBackward1::self_, &ProdBackward1::result_>}},
      {typeid(CumprodBackward0),
       {Question::IsZero, saved_by<CumprodBackward0, &CumprodBackward0::self_, &CumprodBackward0::result_>,
        refuse_long_loops, /*real_alone=*/true}},
      {typeid(LinalgDetBackward0),
       {Question::WhichMatrices,
        saved_by<LinalgDetBackward0, &LinalgDetBackward0::A_, &LinalgDetBackward0::LU_,
                 &LinalgDetBackward0::pivots_, &LinalgDetBackward0::result_>}},
      {typeid(MaskedFillBackward1),
       {.question = Question::Nothing,
        .saved = saved_by<MaskedFillBackward1, &MaskedFillBackward1::mask_>,
        .within_others = true}},
  };
  const auto found = formulas.find(typeid(node));
  return found == formulas.end() ? nullptr : &found->second;
}

/// Gives a tensor to every way. Of the gradients that come back only that of the way which data take counts:
/// others may hold NaN.
struct Parting : GradNode {
  Parting(Tensors conditions, edge_list&& edges)
      : GradNode(std::move(edges)), conditions_(std::move(conditions)) {}
  variable_list apply(variable_list&& gradients) override {
    return {choose(conditions_, std::move(gradients))};
  }
  std::string name() const override { return "tandem::Parting"; }

 private:
  const Tensors conditions_;
};

Tensors part(const at::Tensor& tensor, const Tensors& conditions, size_t ways) {
  if (!tensor.defined() || !tensor.requires_grad()) return Tensors(ways, tensor);
  auto parting = make_node<Parting>(conditions, edge_list{gradient_edge(tensor)});
  Tensors parts;
  for (size_t way = 0; way < ways; ++way) {
    at::Tensor& copy = parts.emplace_back(
        tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
    torch::autograd::impl::set_gradient_edge(copy, {NodePtr(parting), parting->add_input_metadata(copy)});
  }
  return parts;
}

/// While it lives, a node has kept this tensor.
class Kept {
 public:
  Kept(SavedVariable& place, const at::Tensor& tensor) : place_(place), before_(std::move(place)) {
    place_ = SavedVariable(tensor, /*is_output=*/false);
  }
  ~Kept() { place_ = std::move(before_); }
  Kept(const Kept&) = delete;

 private:
  SavedVariable& place_;
  SavedVariable before_;
};

/// Stands for libtorch's node, and calls it once for each way.
struct Branching : GradNode {
  Branching(NodePtr node, const Formula& formula)
      : GradNode(node->sequence_nr(), edge_list(node->next_edges())),
        node_(std::move(node)),
        formula_(formula),
        has_own_code_(saved_hooks_are_set()) {}

  variable_list apply(variable_list&& gradients) override {
    if (has_own_code_) return (*node_)(std::move(gradients));
    const bool apart = c10::GradMode::is_enabled();
    Way first(formula_.question, 0, apart ? Way::Until::Asked : Way::Until::End);
    variable_list results;
    try {
      results = (*node_)(variable_list(gradients));
    } catch (const Way::Asked&) {
    }
    if (!first.asked().defined()) return results;
    const Tensors conditions = conditions_of(formula_.question, first.asked());
    return apart ? go_apart(conditions, gradients) : go(conditions, std::move(results), gradients);
  }
  void release_variables() override { node_->release_variables(); }
  std::string name() const override { return node_->name(); }
  GradNode* inner() const { return node_.get(); }

 private:
  variable_list along(size_t way, const variable_list& gradients) const {
    const Way here(formula_.question, way);
    return (*node_)(variable_list(gradients));
  }

  variable_list go(const Tensors& conditions, variable_list first, const variable_list& gradients) const {
    std::vector<variable_list> results = {std::move(first)};
    for (size_t way = 1; way < formula_.ways(); ++way) results.push_back(along(way, gradients));
    return chosen(conditions, results);
  }

  /// Where the gradients are to be differentiated in turn, the ways have nothing in common.
  variable_list go_apart(const Tensors& conditions, const variable_list& gradients) {
    if (formula_.refuse_next_order) formula_.refuse_next_order(*node_);
    const std::vector<SavedVariable*> places = formula_.saved(*node_);
    std::vector<Tensors> kept, given;
    for (const SavedVariable* place : places)
      kept.push_back(without_others(formula_.question, conditions,
                                    part(place->unpack(getptr()), conditions, formula_.ways())));
    for (const at::Tensor& gradient : gradients) given.push_back(part(gradient, conditions, formula_.ways()));
    std::vector<variable_list> results;
    for (size_t way = 0; way < formula_.ways(); ++way) {
      std::vector<std::unique_ptr<Kept>> own;
      for (size_t i = 0; i < places.size(); ++i)
        own.push_back(std::make_unique<Kept>(*places[i], kept[i][way]));
      variable_list tangents;
      for (const Tensors& gradient : given) tangents.push_back(gradient[way]);
      results.push_back(along(way, tangents));
    }
    return chosen(conditions, results);
  }

  variable_list chosen(const Tensors& conditions, const std::vector<variable_list>& results) const {
    variable_list all;
    for (size_t i = 0; i < results[0].size(); ++i) {
      Tensors of_ways;
      for (const variable_list& result : results) of_ways.push_back(result[i]);
      all.push_back(choose(conditions, std::move(of_ways)));
    }
    return all;
  }

  const NodePtr node_;
  const Formula& formula_;
  /// hooks on saved tensors: what they ask is for the program to know
  const bool has_own_code_;
};

}  // namespace

const std::vector<const char*>& branching_operators() {
  static const std::vector<const char*> names = {"max",
                                                 "min",
                                                 "median",
                                                 "nanmedian",
                                                 "prod",
                                                 "prod.dim_int",
                                                 "cumprod",
                                                 "cumprod_",
                                                 "_linalg_det",
                                                 "masked_fill.Tensor",
                                                 "masked_fill_.Tensor"};
  return names;
}

bool branch(const at::Tensor& result) {
  if (!result.defined() || !result.requires_grad() || result.is_view()) return false;
  const NodePtr node = result.grad_fn();
  const Formula* formula = node ? find_formula(*node) : nullptr;
  if (!formula || (formula->real_alone && result.is_complex()) ||
      (formula->within_others && !Way::current()) || has_hooks(*node) || !node->retains_grad_hooks().empty())
    return false;
  auto branching = make_node<Branching>(node, *formula);
  branching->add_input_metadata(result);
  torch::autograd::impl::set_gradient_edge(result, {NodePtr(branching), 0});
  return true;
}

torch::autograd::Node* stands_for(torch::autograd::Node& node) {
  const auto* branching = dynamic_cast<Branching*>(&node);
  return branching ? branching->inner() : nullptr;
}

}  // namespace tandem

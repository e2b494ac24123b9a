/// One way through a formula of libtorch's that looks at data: what it asks is answered as if the data were
/// so.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "base/autograd.h"
#include "trace/fake.h"

namespace tandem {

/// What a formula asks, and so which ways there are.
enum class Question {
  Nothing,        ///< there is one way
  IsZero,         ///< of a number: it is, or it is not
  HowManyZeros,   ///< none, one, several
  WhichMatrices,  ///< of a mask: none, or all; each matrix of a batch takes its own way
};

/// While it lives, the formula that runs on this thread goes way number `way`.
class Way {
 public:
  enum class Until { End, Asked };

  Way(Question question, size_t way, Until until = Until::End);
  ~Way();
  Way(const Way&) = delete;

  /// Answers an operator that looks at data; false where it is not one that was expected, and is to be
  /// recorded or refused.
  bool answer(const c10::OperatorHandle& op, torch::jit::Stack& stack);

  /// Thrown through a formula that is to go no further than its question.
  struct Asked {};

  /// What the formula wanted to know about, undefined when it did not ask.
  const at::Tensor& asked() const { return asked_; }

  static Way* current();

 private:
  bool take(const at::Tensor& about);
  bool answer_number(torch::jit::Stack& stack);
  bool answer_places(torch::jit::Stack& stack);
  bool answer_part(torch::jit::Stack& stack);
  bool select(torch::jit::Stack& stack);
  bool scatter(torch::jit::Stack& stack);
  bool sum(torch::jit::Stack& stack);

  bool reads_selected(size_t count, const torch::jit::Stack& stack) const;

  const Question question_;
  const size_t way_;
  const Until until_;
  Way* const outer_;
  at::Tensor asked_, selected_, mask_;
};

/// Which way data take: each is a mask of one element, or of one for each matrix. The first that holds
/// counts, and where none does the last way.
Tensors conditions_of(Question question, const at::Tensor& asked);

/// A tensor as each way is given it: matrices that do not go there are harmless ones, since some operators
/// fail for those that are singular, others for NaN.
Tensors without_others(Question question, const Tensors& conditions, Tensors parts);

/// Of the results of the ways the one that data take, undefined where all are.
at::Tensor choose(const Tensors& conditions, Tensors results);

}  // namespace tandem

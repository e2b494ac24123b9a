/// One call of a random program, what follows it, and what is seen of both.
#pragma once

#include "fuzz/observe.h"

namespace tandem::fuzz {

/// The sentence of what `call` throws; empty when it throws nothing.
template <class Call>
std::string failure_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

inline bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.numel() > 0 && b.numel() > 0 && a.storage().is_alias_of(b.storage());
}

/// Random ones, one a root.
Tensors tangents_of(const Tensors& roots);

/// Those that require one.
Tensors with_gradient(const Tensors& tensors);

class Run {
 public:
  Run(const Callable& program, Scene& scene, const Subject& subject, const Call& call)
      : program_(program), scene_(scene), subject_(subject), call_(call) {}

  Observation go();

 private:
  bool call_program();
  void see(const std::string& kind, size_t k, const std::string& facts, const std::string& words = "");
  void see_tensor(const std::string& kind, size_t k, const at::Tensor& t, Exactness exact = Exactness::Bits,
                  bool layout_matters = true);
  void see_state(const std::string& when);
  void see_sharing();
  void write_outputs();
  bool lies_under_forbidden_view(size_t k) const;
  void see_refused_writes();

  void differentiate(const std::string& kind);
  void differentiate_again();
  bool has_several_nodes() const;
  Tensors choose_roots();
  Tensors leaves() const;
  Tangents decide(const std::string& kind, const Tensors& roots);
  Exactness exactness(Tangents how) const;
  bool layout_matters(const std::string& kind, const Tensors& roots) const;
  bool writes_views() const;

  void differentiate_between();
  bool decide_between(const std::string& kind, const Tensors& visible);
  Tensors computed_outputs() const;
  void see_where_eager_answers(const std::string& kind, size_t of, const std::function<Tensors()>& ask);
  Tensors seen_by_hooks(const Tensors& visible, size_t of, const at::Tensor& tangent) const;
  Exactness between_exactness() const;
  bool shares_written_memory(const Tensors& visible) const;

  const Callable& program_;
  Scene& scene_;
  const Subject& subject_;
  const Call call_;
  Tensors outputs_;
  std::vector<bool> written_;
  bool has_hooks_ = false;  ///< the program's own, before or behind which others run
  Observation found_;
};

}  // namespace tandem::fuzz

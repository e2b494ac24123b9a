// With TANDEM_MACHINE_CODE set the backend "eager" of a test program is `fuse`, and "debug" is `loops`, the
// same loops interpreted. Whatever the tests expect of compiled code holds for theirs too, but that numbers
// are judged by the table of tolerances (support/compare.h).
#include <tandem/backend.h>

#include <cstdlib>

#include "backends/registry.h"

namespace {

using namespace tandem;

class Renamed final : public Backend {
 public:
  Renamed(std::string name, std::shared_ptr<Backend> own) : name_(std::move(name)), own_(std::move(own)) {}

  std::string name() const override { return name_; }
  std::string version() const override { return own_->name() + " " + own_->version(); }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    return own_->compile(graph, context);
  }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph& graph,
                                   const CompileContext& context) override {
    return own_->load(bytes, graph, context);
  }
  bool draws_from_states() const override { return own_->draws_from_states(); }
  bool fuses(const Graph& graph, const Node& node) const override { return own_->fuses(graph, node); }
  DecompositionTable decompositions() const override { return own_->decompositions(); }
  void reset() override { own_->reset(); }

 private:
  const std::string name_;
  const std::shared_ptr<Backend> own_;
};

const bool is_machine_code = [] {
  if (!std::getenv("TANDEM_MACHINE_CODE")) return false;
  register_backend(std::make_shared<Renamed>("eager", make_fuse_backend()));
  register_backend(std::make_shared<Renamed>("debug", make_loops_backend()));
  return true;
}();

}  // namespace

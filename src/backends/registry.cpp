#include "backends/registry.h"

#include "base/by_name.h"

namespace tandem {
namespace {

ByName<std::shared_ptr<Backend>>& known_backends() {
  static ByName<std::shared_ptr<Backend>> known("backend", {{"eager", make_eager_backend()},
                                                            {"debug", make_debug_backend()},
                                                            {"fuse", make_fuse_backend()},
                                                            {"loops", make_loops_backend()}});
  return known;
}

class Boxed final : public Executable {
 public:
  explicit Boxed(std::function<Tensors(Tensors&&)> fn) : fn_(std::move(fn)) {}
  Tensors run(Tensors&& inputs) override { return fn_(std::move(inputs)); }

 private:
  std::function<Tensors(Tensors&&)> fn_;
};

}  // namespace

std::shared_ptr<Executable> Backend::load(const std::vector<uint8_t>&, const Graph&, const CompileContext&) {
  return nullptr;
}

void register_backend(std::shared_ptr<Backend> backend) {
  if (!backend) throw Error("register_backend was given no backend; pass a shared pointer to one");
  const std::string name = backend->name();
  known_backends().add(name, std::move(backend));
}

std::shared_ptr<Backend> find_backend(const std::string& name) { return known_backends().find(name); }

std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const auto& [name, backend] : known_backends().all()) names.push_back(name);
  return names;
}

std::shared_ptr<Executable> boxed(std::function<Tensors(Tensors&&)> fn) {
  return std::make_shared<Boxed>(std::move(fn));
}

void reset_backends() {
  for (const auto& [name, backend] : known_backends().all()) backend->reset();
}

}  // namespace tandem

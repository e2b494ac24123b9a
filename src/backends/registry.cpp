#include "backends/registry.h"

#include <tandem/error.h>

#include <mutex>

namespace tandem {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Backend>> backends;

  Registry() {
    for (const auto& backend : {make_eager_backend(), make_debug_backend()}) backends[backend->name()] = backend;
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

class Boxed final : public Executable {
 public:
  explicit Boxed(std::function<Tensors(Tensors&&)> fn) : fn_(std::move(fn)) {}
  Tensors run(Tensors&& inputs) override { return fn_(std::move(inputs)); }

 private:
  std::function<Tensors(Tensors&&)> fn_;
};

}  // namespace

std::shared_ptr<Executable> Backend::load(const std::vector<uint8_t>&, const Graph&, const CompileContext&) { return nullptr; }

void register_backend(std::shared_ptr<Backend> backend) {
  if (!backend) throw Error("register_backend was given no backend; pass a shared pointer to one");
  Registry& all = registry();
  std::string name = backend->name();
  std::lock_guard lock(all.mutex);
  all.backends[std::move(name)] = std::move(backend);
}

std::shared_ptr<Backend> find_backend(const std::string& name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.backends.find(name);
  if (found != all.backends.end()) return found->second;
  std::string known;
  for (const auto& [other, backend] : all.backends) known += (known.empty() ? "" : ", ") + other;
  throw Error("there is no backend named '" + name + "'; choose one of " + known + ", or add yours with register_backend");
}

std::vector<std::string> backends() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, backend] : all.backends) names.push_back(name);
  return names;
}

std::shared_ptr<Executable> boxed(std::function<Tensors(Tensors&&)> fn) { return std::make_shared<Boxed>(std::move(fn)); }

void reset_backends() {
  Registry& all = registry();
  std::vector<std::shared_ptr<Backend>> present;
  {
    std::lock_guard lock(all.mutex);
    for (const auto& [name, backend] : all.backends) present.push_back(backend);
  }
  for (const auto& backend : present) backend->reset();   // outside the lock: a backend may ask the registry
}

}  // namespace tandem

// The small members: naming values, and sizes in elements and bytes.
#include <ATen/EmptyTensor.h>
#include <tandem/graph.h>

namespace tandem {

int64_t TensorMeta::numel() const {
  uint64_t n = 1;  // unsigned: sizes before a 0 may overflow, and their product does not matter
  for (int64_t size : sizes) n *= uint64_t(size);
  return int64_t(n);
}

int64_t TensorMeta::storage_bytes() const {
  return int64_t(at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype), size_t(offset)));
}

bool same_geometry(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides &&
         a.offset == b.offset && a.conj == b.conj && a.neg == b.neg;
}

namespace {

auto name_position(auto& names, Value value) {
  return std::lower_bound(names.begin(), names.end(), value.id,
                          [](const auto& entry, int32_t id) { return entry.first < id; });
}

}  // namespace

std::string Graph::name(Value value) const {
  auto it = name_position(names_, value);
  return it != names_.end() && it->first == value.id ? it->second : std::to_string(value.id);
}

void Graph::set_name(Value value, std::string name) {
  auto it = name_position(names_, value);
  const bool named = it != names_.end() && it->first == value.id;
  if (name.empty()) {
    if (named) names_.erase(it);
  } else if (named) {
    it->second = std::move(name);
  } else {
    names_.insert(it, {value.id, std::move(name)});
  }
}

Value Graph::add_value(TensorMeta meta) {
  next_storage_ = std::max(next_storage_, meta.storage + 1);
  metas_.push_back(std::move(meta));
  return Value{int32_t(metas_.size() - 1)};
}

void Graph::set_meta(Value value, TensorMeta meta) {
  next_storage_ = std::max(next_storage_, meta.storage + 1);
  metas_[value.id] = std::move(meta);
}

Value Graph::add_input(TensorMeta meta, std::string name) {
  Value value = add_value(std::move(meta));
  if (!name.empty()) set_name(value, std::move(name));
  inputs_.push_back(value);
  return value;
}

Value Graph::add_constant(TensorMeta meta, at::Tensor data) {
  Value value = add_value(std::move(meta));
  constants_.emplace_back(value, std::move(data));
  return value;
}

Graph Graph::without_nodes() const {
  Graph bare;
  bare.inputs_ = inputs_;
  bare.outputs_ = outputs_;
  bare.metas_ = metas_;
  bare.next_storage_ = next_storage_;
  bare.names_ = names_;
  bare.constants_ = constants_;
  return bare;
}

Node& Graph::add_node(Node node) { return nodes_.emplace_back(std::move(node)); }

}  // namespace tandem

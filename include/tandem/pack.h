/// A value in parts: who takes it apart into tensors and the rest, and who puts it together again.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Type.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] tandem {

/// How values of type T are written and read back: tensors, numbers, strings, enums, standard containers, and
/// structs whose fields are such (see wrapper.h). Specialise it for a class of your own with
///   static void write(const T&, Writer&);   // every part, through Writer::write
///   static T read(Reader&);                 // the same parts in the same order, through Reader::read
template <class T>
struct Pack;

/// Takes a value apart.
class Writer {
 public:
  std::vector<at::Tensor> tensors;
  /// numbers, strings, lengths, which optionals are set: all that is no tensor
  std::string rest;
  std::vector<std::string>* names = nullptr;  ///< where to put the name of each tensor, when somebody asks
  std::string path;                           ///< the name of what is being written, kept only for `names`
  bool names_kinds = false;                   ///< names tell the type of what a variant holds

  template <class T>
  void write(const T& value) {
    Pack<T>::write(value, *this);
  }
  /// Writes a part of a value; `label` is its position or key.
  template <class T, class Label>
  void write_part(const Label& label, const T& value) {
    part(label, [&] { write(value); });
  }
  /// The same for whoever writes the part himself.
  template <class Label, class Write>
  void part(const Label& label, const Write& write_it) {
    if (!names) return write_it();
    size_t length = path.size();
    append(label);
    write_it();
    path.resize(length);
  }
  /// Writes what a variant holds.
  template <class T>
  void write_held(const T& value) {
    size_t length = path.size();
    if (names && names_kinds) (path += ":") += c10::demangle_type<T>();
    write(value);
    path.resize(length);
  }
  void write_tensor(const at::Tensor& tensor) {
    tensors.push_back(tensor);
    if (names) names->push_back(path);
  }
  void write_bytes(const void* bytes, size_t count) { rest.append(static_cast<const char*>(bytes), count); }
  void write_size(size_t size) { write_bytes(&size, sizeof size); }

 private:
  void append(size_t position) { path += "[" + std::to_string(position) + "]"; }
  template <class Key>
  void append(const Key& key) {
    if constexpr (std::is_convertible_v<const Key&, std::string_view>)
      (path += ".") += key;
    else
      path += "[key]";
  }
};

/// Puts values together again. What `read` returns may refer to memory that the reader owns.
class Reader {
 public:
  Reader(const std::vector<at::Tensor>& tensors, std::string_view rest) : tensors_(tensors), rest_(rest) {}

  template <class T>
  T read() {
    return Pack<T>::read(*this);
  }
  const at::Tensor& read_tensor() { return tensors_[next_++]; }
  void read_bytes(void* bytes, size_t count) {
    std::memcpy(bytes, rest_.data(), count);
    rest_.remove_prefix(count);
  }
  size_t read_size() {
    size_t size = 0;
    read_bytes(&size, sizeof size);
    return size;
  }
  template <class T>
  const T& keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return *kept;
  }

 private:
  const std::vector<at::Tensor>& tensors_;
  size_t next_ = 0;
  std::string_view rest_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace tandem

#include <tandem/detail/packs.h>  // IWYU pragma: export

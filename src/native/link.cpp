#include <deque>
#include <map>

#include "native/object.h"
#include "tandem/error.h"

namespace tandem::native {

Image link(std::span<const uint8_t> object, const std::string& kernel, const FindObject& find) {
  Image image;
  std::deque<Object> objects;
  std::map<std::string, const Object*> holders;
  const auto add = [&](std::span<const uint8_t> bytes, const std::string& name) {
    objects.emplace_back(bytes).place_in(image);
    holders[name] = &objects.back();
  };
  add(object, kernel);
  for (size_t i = 0; i < objects.size(); ++i)
    for (const std::string& name : objects[i].missing())
      if (!holders.contains(name)) add(find(name), name);

  const auto address_of = [&](const std::string& name) {
    const auto holder = holders.find(name);
    if (holder == holders.end()) throw Error("A kernel calls " + name + ", which is not there: report it.");
    return holder->second->address_of(image, name);
  };
  for (const Object& each : objects) each.relocate(image, address_of);
  image.entry = address_of(kernel);
  return image;
}

}  // namespace tandem::native

#include "base/sha256.h"

#include <openssl/evp.h>
#include <tandem/error.h>

namespace tandem {

std::string sha256_bytes(std::string_view bytes) {
  constexpr size_t length = 32;
  std::string digest(length, 0);
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(), nullptr) != 1)
    throw Error("OpenSSL could not compute a SHA-256; check its configuration.");
  return digest;
}

std::string sha256(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : sha256_bytes(bytes)) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

}  // namespace tandem

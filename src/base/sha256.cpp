// The digest is called by itself, as OpenSSL 1.1 has it: going through the list of digests takes a
// millisecond at first.
#define OPENSSL_API_COMPAT 0x10100000L
#include "base/sha256.h"

#include <openssl/sha.h>

namespace tandem {

std::string sha256_bytes(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, 0);
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

std::string sha256(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : sha256_bytes(bytes)) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

}  // namespace tandem

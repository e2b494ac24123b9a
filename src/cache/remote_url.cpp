#include "cache/remote_url.h"

#include <tandem/error.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace tandem::cache {

namespace {

/// A part is never quoted: in a URL with a forgotten "@" or "/", the password stands where a host, a port or
/// a database is expected.
[[noreturn]] void refuse(const std::string& what) {
  throw Error("The URL of the remote cache " + what +
              "; it has the form redis://[user:password@]host[:port][/database].");
}

constexpr std::string_view scheme = "redis://";

std::string_view after_scheme(std::string_view url) {
  if (url.starts_with("rediss://"))
    refuse("asks for TLS (rediss), which Tandem does not speak: use redis:// through a tunnel");
  if (!url.starts_with(scheme)) refuse("does not begin with redis://");
  if (std::ranges::any_of(url, [](unsigned char c) { return c <= ' ' || c >= 127; }))
    refuse("contains a space or another character that must be written as %XX");
  return url.substr(scheme.size());
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      refuse(
          "has a % in its user or password that two hexadecimal digits do not follow (a plain % is written "
          "%25)");
    decoded += char(high * 16 + low);
    i += 2;
  }
  return decoded;
}

void read_user_and_password(std::string_view text, RemoteAddress& address) {
  const size_t colon = text.find(':');
  if (colon == text.npos)
    refuse(
        "has a user without a password before the @: write user:password@, or :password@ for the default "
        "user");
  address.user = percent_decoded(text.substr(0, colon));
  address.password = percent_decoded(text.substr(colon + 1));
  if (address.password.empty())
    refuse("has an empty password before the @: leave the whole part out when the server asks for none");
}

std::optional<uint32_t> whole_number(std::string_view digits, uint32_t most) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || number > most)
    return std::nullopt;
  return number;
}

void read_database(std::string_view digits, RemoteAddress& address) {
  if (digits.empty()) return;
  const auto number = whole_number(digits, INT32_MAX);
  if (!number) refuse("has something else than the number of a database after the host");
  address.database = *number;
}

/// Splits "host", "host:port", "[v6]" or "[v6]:port"; what is left of the host is not checked yet.
std::string_view take_host(std::string_view text, std::string_view& port) {
  if (text.starts_with('[')) {
    const size_t bracket = text.find(']');
    if (bracket == text.npos) refuse("opens a bracket before its IPv6 address and does not close it");
    port = text.substr(bracket + 1);
    return text.substr(1, bracket - 1);
  }
  const size_t colon = std::min(text.find(':'), text.size());
  port = text.substr(colon);
  if (port.find(':', 1) != port.npos)
    refuse("has more than one colon after its host: an IPv6 address is written in brackets");
  return text.substr(0, colon);
}

void read_host_and_port(std::string_view text, RemoteAddress& address) {
  std::string_view port;
  address.host = take_host(text, port);
  if (address.host.empty()) refuse("names no host");
  const bool v6 = text.starts_with('[');
  const auto fits = [v6](unsigned char c) {
    return c == '.' || (v6 ? std::isxdigit(c) || c == ':' : std::isalnum(c) || c == '-' || c == '_');
  };
  if (!std::ranges::all_of(address.host, fits)) refuse("has a host with characters that a host cannot have");
  if (port.empty()) return;
  const auto number = port.front() == ':' ? whole_number(port.substr(1), UINT16_MAX) : std::nullopt;
  if (!number || *number == 0) refuse("has a port that is no number from 1 to 65535");
  address.port = uint16_t(*number);
}

}  // namespace

RemoteAddress parse_remote_url(std::string_view url) {
  std::string_view rest = after_scheme(url);
  RemoteAddress address;
  // The last @, so that a password with an @ or a / in it is still taken as a whole.
  if (const size_t at = rest.rfind('@'); at != rest.npos) {
    read_user_and_password(rest.substr(0, at), address);
    rest.remove_prefix(at + 1);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  read_host_and_port(rest.substr(0, slash), address);
  read_database(rest.substr(std::min(slash + 1, rest.size())), address);
  return address;
}

std::string shown(const RemoteAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace tandem::cache

#include "engine/base/fingerprint.h"

#include <openssl/sha.h>

namespace tensord {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Fingerprint Fingerprint::Of(absl::string_view content) {
  static_assert(kBytes == SHA256_DIGEST_LENGTH);
  Fingerprint result;
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), result.bytes_.data());
  return result;
}

std::optional<Fingerprint> Fingerprint::FromHex(absl::string_view hex) {
  if (hex.size() != 2 * kBytes) return std::nullopt;
  Fingerprint result;
  for (size_t i = 0; i < kBytes; ++i) {
    const int high = DigitValue(hex[2 * i]);
    const int low = DigitValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    result.bytes_[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return result;
}

std::string Fingerprint::ToHex() const {
  std::string hex;
  hex.reserve(2 * kBytes);
  for (uint8_t byte : bytes_) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

}  // namespace tensord

#include "engine/base/fingerprint.h"

#include <openssl/sha.h>

#include <array>
#include <cstdint>

namespace tensord {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Returns the value of each character as a digit; -1: no digit.
constexpr std::array<int8_t, 256> DigitValues() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (int8_t digit = 0; digit < 16; ++digit) values[static_cast<unsigned char>(kDigits[digit])] = digit;
  return values;
}

constexpr std::array<int8_t, 256> kDigitValues = DigitValues();

int DigitValue(char c) { return kDigitValues[static_cast<unsigned char>(c)]; }

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
  std::string hex(2 * kBytes, '0');
  WriteHex(hex.data());
  return hex;
}

void Fingerprint::WriteHex(char* digits) const {
  for (uint8_t byte : bytes_) {
    *digits++ = kDigits[byte >> 4];
    *digits++ = kDigits[byte & 15];
  }
}

}  // namespace tensord

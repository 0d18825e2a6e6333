#ifndef TENSORD_ENGINE_BASE_FINGERPRINT_H_
#define TENSORD_ENGINE_BASE_FINGERPRINT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace tensord {

// A SHA-256 of content. A value; equality of fingerprints is not taken for equality of content by anyone.
class Fingerprint {
 public:
  static constexpr size_t kBytes = 32;

  Fingerprint() = default;

  static Fingerprint Of(absl::string_view content);
  // 64 hexadecimal digits, lower case; nothing for any other text.
  static std::optional<Fingerprint> FromHex(absl::string_view hex);

  static Fingerprint FromBytes(const std::array<uint8_t, kBytes>& bytes) {
    Fingerprint fingerprint;
    fingerprint.bytes_ = bytes;
    return fingerprint;
  }

  const std::array<uint8_t, kBytes>& bytes() const { return bytes_; }
  std::string ToHex() const;
  // The same into 64 chars of the caller's, without a zero after them; a signal handler may.
  void WriteHex(char* digits) const;

  friend bool operator==(const Fingerprint& a, const Fingerprint& b) { return a.bytes_ == b.bytes_; }

  template <typename H>
  friend H AbslHashValue(H state, const Fingerprint& f) {
    uint64_t word;  // a cryptographic hash is uniform, so any 8 bytes do
    std::memcpy(&word, f.bytes_.data(), sizeof(word));
    return H::combine(std::move(state), word);
  }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_FINGERPRINT_H_

#ifndef TENSORD_PROTO_CHECKSUM_CRC32C_H_
#define TENSORD_PROTO_CHECKSUM_CRC32C_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord {

// CRC-32C (Castagnoli), as iSCSI, ext4 and gRPC's relatives use it: polynomial 0x1EDC6F41, bits reflected, begun with
// all ones and inverted at the end. The checksum of "123456789" is 0xE3069283.

// Extends the checksum `crc` of earlier bytes by more bytes; the checksum of no bytes is 0. Runs at about the speed of
// memory if the processor has instructions for it.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);
inline uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

// Extends the checksum and copies the bytes. Bytes of a whole of 512 KiB and more go past the caches if the processor
// can do that: so they are not fetched before they are written, and do not displace the data in use.
uint32_t CopyWithCrc32c(uint32_t crc, absl::string_view bytes, char* to, int64_t whole);

// Every way to do that on this processor, the fastest first; all give the same.
struct Crc32cWay {
  uint32_t (*extend)(uint32_t crc, absl::string_view bytes);
  uint32_t (*copy)(uint32_t crc, absl::string_view bytes, char* to);  // past the caches, if it can
};
std::vector<Crc32cWay> Crc32cWays();

}  // namespace tensord

#endif  // TENSORD_PROTO_CHECKSUM_CRC32C_H_

#ifndef TENSORD_PROTO_CHECKSUM_CRC32C_H_
#define TENSORD_PROTO_CHECKSUM_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord {

// CRC-32C (Castagnoli), as iSCSI, ext4 and gRPC's relatives use it: polynomial 0x1EDC6F41, bits reflected, begun with
// all ones and inverted at the end. Of "123456789" it is 0xE3069283.

// Of bytes that follow others whose checksum is `crc`; of nothing it is 0. Uses the processor's instruction where it
// has one: some gigabytes a second.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);
inline uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

// The same from tables, on any processor.
uint32_t ExtendCrc32cByTables(uint32_t crc, absl::string_view bytes);

}  // namespace tensord

#endif  // TENSORD_PROTO_CHECKSUM_CRC32C_H_

#include "engine/runtime/programs/crash_record.h"

#include <algorithm>
#include <cstring>

namespace tensord {
namespace {

constexpr std::array<char, 8> kRecordFormat = {'t', 'n', 's', 'd', 'c', 'r', 's', '1'};

// FNV-1a: against damage, not against who can write the file.
uint64_t ChecksumOf(const CrashRecord& record) {
  uint64_t sum = 0xcbf29ce484222325;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&record);
  for (size_t i = 0; i < offsetof(CrashRecord, checksum); ++i) sum = (sum ^ bytes[i]) * 0x100000001b3;
  return sum;
}

absl::string_view Cut(absl::string_view version) { return version.substr(0, CrashRecord::kVersionBytes); }

}  // namespace

CrashRecord MakeCrashRecord(const WorkSeen& seen, bool is_known, int signal, int64_t unix_ns,
                            absl::string_view version) {
  CrashRecord record{.format = kRecordFormat,
                     .fingerprint = seen.fingerprint.bytes(),
                     .unix_ns = unix_ns,
                     .signal = signal,
                     .work = static_cast<uint8_t>(seen.work),
                     .is_known = is_known};
  const absl::string_view kept = Cut(version);
  std::copy(kept.begin(), kept.end(), record.version.begin());
  record.checksum = ChecksumOf(record);
  return record;
}

bool IsOfVersion(const CrashRecord& record, absl::string_view version) {
  const absl::string_view kept(record.version.data(), strnlen(record.version.data(), record.version.size()));
  return kept == Cut(version);
}

absl::string_view BytesOf(const CrashRecord& record) {
  return {reinterpret_cast<const char*>(&record), sizeof(record)};
}

std::optional<CrashRecord> ReadCrashRecord(absl::string_view bytes, const Fingerprint& fingerprint) {
  CrashRecord record;
  if (bytes.size() != sizeof(record)) return std::nullopt;
  std::memcpy(&record, bytes.data(), sizeof(record));
  if (record.format != kRecordFormat || record.checksum != ChecksumOf(record)) return std::nullopt;
  if (record.fingerprint != fingerprint.bytes() || record.work >= kNumProgramWorks || record.is_known > 1) {
    return std::nullopt;
  }
  return record;
}

}  // namespace tensord

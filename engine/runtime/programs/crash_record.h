#ifndef TENSORD_ENGINE_RUNTIME_PROGRAMS_CRASH_RECORD_H_
#define TENSORD_ENGINE_RUNTIME_PROGRAMS_CRASH_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "engine/base/fingerprint.h"
#include "engine/base/program_at_work.h"

namespace tensord {

// The record of a program that was at work when a server died by a signal. On disk it has its form in memory, without
// pointers, so that a signal handler can make it; a machine of another kind finds its checksum wrong.
struct CrashRecord {
  static constexpr size_t kVersionBytes = 128;

  std::array<char, 8> format{};
  std::array<uint8_t, Fingerprint::kBytes> fingerprint{};
  int64_t unix_ns = 0;
  int32_t signal = 0;
  uint8_t work = 0;      // ProgramWork
  uint8_t is_known = 0;  // 1: the thread that crashed worked for it; 0: some thread did
  std::array<uint8_t, 2> unused{};
  std::array<char, kVersionBytes> version{};  // of the server, and zeros
  uint64_t checksum = 0;                      // of all before
};
static_assert(sizeof(CrashRecord) == 192, "there are no holes");

// Makes a record; a signal handler may call it. A version that is too long is cut, and so is its counterpart in
// comparisons.
CrashRecord MakeCrashRecord(const WorkSeen& seen, bool is_known, int signal, int64_t unix_ns,
                            absl::string_view version);
bool IsOfVersion(const CrashRecord& record, absl::string_view version);
absl::string_view BytesOf(const CrashRecord& record);

// Returns nothing if the bytes are no record of that program.
std::optional<CrashRecord> ReadCrashRecord(absl::string_view bytes, const Fingerprint& fingerprint);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_PROGRAMS_CRASH_RECORD_H_

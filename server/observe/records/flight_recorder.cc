#include "server/observe/records/flight_recorder.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/records/crash_line.h"

namespace tensord::server {
namespace {

constexpr uint64_t kWrittenInCrash = 64;  // of each ring

int32_t MicrosOf(const std::optional<absl::Duration>& time) {
  if (!time.has_value()) return -1;
  return static_cast<int32_t>(std::min<int64_t>(absl::ToInt64Microseconds(*time), std::numeric_limits<int32_t>::max()));
}

// Collects the entries that are still in the ring, the oldest first.
void Collect(const FlightRing& ring, size_t limit, std::vector<FlightEntry>* entries) {
  const uint64_t end = ring.turns();
  const uint64_t count = std::min<uint64_t>({end, ring.size(), limit});
  for (uint64_t turn = end - count; turn < end; ++turn) {
    FlightEntry entry;
    if (ring.Read(turn, &entry)) entries->push_back(entry);
  }
}

}  // namespace

FlightRecorder::FlightRecorder(const Options& options)
    : slow_(options.slow),
      usual_(static_cast<size_t>(options.entries)),
      notable_(static_cast<size_t>((options.entries + 3) / 4)) {}

void FlightRecorder::Request(const RequestRecord& record) {
  if (usual_.size() == 0) return;
  FlightEntry entry{};
  entry.unix_ns = absl::GetCurrentTimeNanos();
  entry.is_streamed = record.is_streamed;
  entry.method = record.method;
  entry.code = static_cast<uint8_t>(record.code);
  entry.total_ns = absl::ToInt64Nanoseconds(record.total);
  entry.received_bytes = record.received_bytes;
  entry.sent_bytes = record.sent_bytes;
  for (size_t i = 0; i < kNumStages; ++i) entry.stage_us[i] = MicrosOf(record.stages.Of(static_cast<Stage>(i)));
  entry.trace_id = record.trace.context.trace_id;
  entry.fingerprint.Set(record.fingerprint);
  entry.device.Set(record.device);
  entry.reason.Set(record.reason);
  entry.tenant.Set(record.tenant);
  entry.text.Set(record.request_id);
  const bool is_notable = record.code != absl::StatusCode::kOk || record.total >= slow();
  (is_notable ? notable_ : usual_).Add(entry);
}

void FlightRecorder::Event(absl::string_view event, absl::string_view message) {
  if (notable_.size() == 0) return;
  FlightEntry entry{};
  entry.unix_ns = absl::GetCurrentTimeNanos();
  entry.is_event = true;
  entry.stage_us.fill(-1);
  entry.text.Set(absl::StrCat(event, "\n", message));
  notable_.Add(entry);
}

FlightRecorder::Dump FlightRecorder::Read(size_t limit, bool notable_only) const {
  Dump dump{.entries = {}, .lost = usual_.lost() + notable_.lost()};
  Collect(notable_, limit, &dump.entries);
  if (!notable_only) Collect(usual_, limit, &dump.entries);
  std::stable_sort(dump.entries.begin(), dump.entries.end(),
                   [](const FlightEntry& a, const FlightEntry& b) { return a.unix_ns < b.unix_ns; });
  if (dump.entries.size() > limit)
    dump.entries.erase(dump.entries.begin(), dump.entries.end() - static_cast<std::ptrdiff_t>(limit));
  return dump;
}

void FlightRecorder::WriteTo(int descriptor) const {
  for (const FlightRing* ring : {&notable_, &usual_}) {
    const uint64_t end = ring->turns();
    const uint64_t count = std::min<uint64_t>({end, ring->size(), kWrittenInCrash});
    for (uint64_t turn = end - count; turn < end; ++turn) {
      FlightEntry entry;
      if (ring->Read(turn, &entry)) WriteCrashLine(entry, descriptor);
    }
  }
}

}  // namespace tensord::server

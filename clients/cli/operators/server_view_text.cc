#include "clients/cli/operators/server_view_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/shell/printable_text.h"
#include "clients/cli/shell/short_text.h"

namespace tensord::cli {
namespace {

constexpr absl::string_view kBetweenFields = "   ";

std::string Time(const std::optional<absl::Duration>& duration) {
  return duration.has_value() ? ShortTime(*duration) : "-";
}

// Appends lines with as many of the fields as there is room for.
void AppendFields(const std::vector<std::string>& fields, size_t columns, std::vector<std::string>* lines) {
  std::string line;
  for (const std::string& field : fields) {
    if (!line.empty() && line.size() + kBetweenFields.size() + field.size() > columns) {
      lines->push_back(std::exchange(line, ""));
    }
    absl::StrAppend(&line, line.empty() ? "" : kBetweenFields, field);
  }
  lines->push_back(std::move(line));
}

std::vector<std::string> Head(const ServerView& view, size_t columns) {
  std::vector<std::string> lines;
  AppendFields({absl::StrCat("tensord ", view.version, ", ", view.is_ready ? "ready" : "not ready",
                             view.is_draining ? ", draining" : ""),
                absl::StrCat("received ", ShortBytes(view.received_bytes_per_second), "/s"),
                absl::StrCat("sent ", ShortBytes(view.sent_bytes_per_second), "/s"),
                absl::StrCat("in flight ", ShortBytes(view.in_flight_bytes))},
               columns, &lines);
  AppendFields({absl::StrFormat("programs %.0f of %s, on disk %.0f of %s", view.cached_programs,
                                ShortBytes(view.cached_bytes), view.disk_programs, ShortBytes(view.disk_bytes)),
                absl::StrCat("compiled ", ShortCount(view.compiled_per_second), "/s")},
               columns, &lines);
  return lines;
}

std::string MethodRow(absl::string_view name, absl::string_view calls, absl::string_view failed,
                      absl::string_view in_flight, absl::string_view p50, absl::string_view p99) {
  return absl::StrFormat("%-16s %7s %8s %9s %7s %7s", name, calls, failed, in_flight, p50, p99);
}

// Returns rows of the methods that are called first, the busiest in front.
std::vector<std::string> MethodRows(const ServerView& view) {
  std::vector<std::pair<std::string, ServerView::Method>> methods(view.methods.begin(), view.methods.end());
  std::stable_sort(methods.begin(), methods.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second.calls_per_second, a.second.in_flight) >
           std::make_pair(b.second.calls_per_second, b.second.in_flight);
  });
  std::vector<std::string> rows;
  for (const auto& [name, method] : methods) {
    rows.push_back(MethodRow(name, ShortCount(method.calls_per_second), ShortCount(method.failed_per_second),
                             ShortCount(method.in_flight), Time(method.p50), Time(method.p99)));
  }
  return rows;
}

std::string DeviceRow(absl::string_view name, absl::string_view runs, absl::string_view queued, absl::string_view busy,
                      absl::string_view used, absl::string_view free, absl::string_view peak) {
  return absl::StrFormat("%-8s %7s %6s %9s %8s %8s %8s", name, runs, queued, busy, used, free, peak);
}

std::vector<std::string> DeviceRows(const ServerView& view) {
  std::vector<std::string> rows;
  for (const auto& [name, device] : view.devices) {
    rows.push_back(DeviceRow(name, ShortCount(device.runs_per_second), ShortCount(device.queued),
                             absl::StrFormat("%.2f/%d", device.busy_executors, device.executors),
                             ShortBytes(device.memory_used_bytes), ShortBytes(device.memory_free_bytes),
                             ShortBytes(device.memory_peak_bytes)));
  }
  return rows;
}

// The first rows, as many as there is room for with a line that says how many are missing.
void AppendRows(std::vector<std::string> rows, size_t room, absl::string_view what, std::vector<std::string>* lines) {
  if (rows.size() > room) {
    const size_t kept = room > 0 ? room - 1 : 0;
    const std::string rest = absl::StrCat("and ", rows.size() - kept, " more ", what);
    rows.resize(kept);
    if (room > 0) rows.push_back(rest);
  }
  lines->insert(lines->end(), rows.begin(), rows.end());
}

}  // namespace

std::vector<std::string> ServerViewLines(const ServerView& view, const ScreenSize& size) {
  std::vector<std::string> lines = Head(view, size.columns);
  const std::vector<std::string> methods = MethodRows(view), devices = DeviceRows(view);
  constexpr size_t kTitles = 2, kGaps = 2;
  const size_t room = size.rows > lines.size() + kTitles ? size.rows - lines.size() - kTitles : 0;
  const bool has_gaps = room >= kGaps + methods.size() + devices.size() || room > 2 * kGaps;
  const size_t rows = room - (has_gaps ? kGaps : 0);
  // Half of the room is theirs at least where there is more of both.
  const size_t of_devices = std::min(devices.size(), std::max(rows / 2, rows - std::min(rows, methods.size())));
  if (has_gaps) lines.emplace_back();
  lines.push_back(MethodRow("method", "calls/s", "failed/s", "in flight", "p50", "p99"));
  AppendRows(methods, rows - of_devices, "methods", &lines);
  if (has_gaps) lines.emplace_back();
  lines.push_back(DeviceRow("device", "runs/s", "queued", "busy", "used", "free", "peak"));
  AppendRows(devices, of_devices, "devices", &lines);
  if (lines.size() > size.rows) lines.resize(size.rows);
  for (std::string& line : lines) {
    line = PrintableLine(line);
    line.resize(std::min(line.size(), size.columns));
  }
  return lines;
}

}  // namespace tensord::cli

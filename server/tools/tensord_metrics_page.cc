// Prints docs/operate/metrics.md, which is made from the table of metrics.

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "engine/runtime/devices/segment_times.h"
#include "server/observe/metrics/metrics.h"
#include "server/observe/metrics/tenant_series.h"

namespace tensord::server {
namespace {

constexpr char kHead[] = R"(# Metrics

<!-- Generated from the code by `./dev update-golden`; edit the tables there, not this page. -->

Series of `/metrics`, in seconds and bytes. No label names a graph, a program, a session or a
client's address, so the number of series is bounded. Labels are methods, devices, stages, reasons
and limits, all known at the start; tenants, of which the first )";

constexpr char kTail[] = R"(
Histograms of several servers add up, and `histogram_quantile` takes any quantile of the sum; there
are no summaries. [What is not measured](not-measured.md) lists other metrics with the reasons why
they are missing. Alerts and the dashboard over these series are in
[deploy/prometheus](../../deploy/prometheus/README.md) and
[deploy/grafana](../../deploy/grafana/README.md).
)";

// "16.8 s", "1 KiB": three digits.
std::string Rounded(double value, absl::string_view unit) { return absl::StrFormat("%.3g %s", value, unit); }

std::string TimeText(double seconds) {
  if (seconds < 1e-3) return Rounded(seconds * 1e6, "µs");
  return seconds < 1 ? Rounded(seconds * 1e3, "ms") : Rounded(seconds, "s");
}

std::string SizeText(double bytes) {
  for (const char* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (bytes < 1024) return Rounded(bytes, unit);
    bytes /= 1024;
  }
  return Rounded(bytes, "TiB");
}

std::string BucketsTable() {
  std::string table = "\n## Buckets\n\n| histogram | upper bounds |\n|---|---|\n";
  for (size_t i = 0; i < AllMetrics().size(); ++i) {
    const MetricInfo& info = AllMetrics()[i];
    if (info.type != "histogram") continue;
    const std::vector<double> bounds = BoundsOf(static_cast<Metric>(i));
    const bool is_size = absl::EndsWith(info.name, "_bytes");
    const auto text = [is_size](double bound) { return is_size ? SizeText(bound) : TimeText(bound); };
    absl::StrAppend(&table, "| `", info.name, "` | ", bounds.size(), ": ", text(bounds.front()), ", each ",
                    info.buckets.factor, " times the one before, to ", text(bounds.back()), " |\n");
  }
  return table;
}

std::string Page() {
  std::string page =
      absl::StrCat(kHead, TenantSeries::kMaxTenants, " have series of their own;\nand operations, of which the first ",
                   SegmentTimes::kMaxOps, " have. The others count as `other`.\n\n");
  absl::StrAppend(&page, "| metric | type | labels | meaning |\n|---|---|---|---|\n");
  for (const MetricInfo& info : AllMetrics()) {
    const std::string labels =
        info.labels.empty() ? "" : absl::StrCat("`", absl::StrReplaceAll(info.labels, {{",", "`, `"}}), "`");
    absl::StrAppend(&page, "| `", info.name, "` | ", info.type, " | ", labels, " | ", info.help, " |\n");
  }
  absl::StrAppend(&page, BucketsTable(), kTail);
  return page;
}

}  // namespace
}  // namespace tensord::server

int main() {
  std::fputs(tensord::server::Page().c_str(), stdout);
  return 0;
}

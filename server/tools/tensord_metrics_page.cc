// Prints docs/metrics.md, which is made from the table of metrics.

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/runtime/segment_times.h"
#include "server/observe/metrics.h"
#include "server/observe/tenant_series.h"

namespace tensord::server {
namespace {

constexpr char kHead[] = R"(# Metrics

<!-- Generated from the code by `./dev update-golden`; edit the tables there, not this page. -->

What `/metrics` shows, in seconds and bytes. A series is never named after a graph, a program, a session or a client's address, so that
their number is bounded: by methods, devices, stages, reasons and limits, which the server knows when it starts, by operations (the first
)";

constexpr char kHistograms[] = R"(
## Buckets

| histogram | upper bounds |
|---|---|
| `tensord_rpc_duration_seconds` | 50 µs, doubling, to 105 s |
| `tensord_execute_stage_seconds` | 10 µs, doubling, to 10.5 s |
| `tensord_compile_seconds` | 100 µs, doubling, to 105 s |
| `tensord_segment_seconds` | 1 µs, fourfold, to 16.8 s |

Histograms of several servers add up, and `histogram_quantile` takes any quantile of the sum; there are no summaries.
The alerts and the dashboard that are made of these are in [deploy/prometheus](../deploy/prometheus/README.md) and
[deploy/grafana](../deploy/grafana/README.md).
)";

std::string Page() {
  std::string page = absl::StrCat(kHead, SegmentTimes::kMaxOps, ") and by tenants (the first ",
                                  TenantSeries::kMaxTenants, "); what comes after these is counted as `other`.\n\n");
  absl::StrAppend(&page, "| metric | type | labels | meaning |\n|---|---|---|---|\n");
  for (const MetricInfo& info : AllMetrics()) {
    const std::string labels =
        info.labels.empty() ? "" : absl::StrCat("`", absl::StrReplaceAll(info.labels, {{",", "`, `"}}), "`");
    absl::StrAppend(&page, "| `", info.name, "` | ", info.type, " | ", labels, " | ", info.help, " |\n");
  }
  absl::StrAppend(&page, kHistograms);
  return page;
}

}  // namespace
}  // namespace tensord::server

int main() {
  std::fputs(tensord::server::Page().c_str(), stdout);
  return 0;
}

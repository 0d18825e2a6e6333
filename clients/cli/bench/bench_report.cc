#include "clients/cli/bench/bench_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/shell/short_text.h"
#include "clients/load/latency_histogram.h"

namespace tensord::cli {
namespace {

using load::LatencyHistogram;
using load::WorkloadResult;
using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

struct QuantileName {
  const char* name;
  double fraction;
};
constexpr QuantileName kQuantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

void AppendTimes(absl::string_view label, const LatencyHistogram& times, std::string* text) {
  absl::StrAppendFormat(text, "  %-8s", label);
  for (const QuantileName& quantile : kQuantiles) {
    absl::StrAppendFormat(text, " %s %-6s", quantile.name, ShortTime(times.Quantile(quantile.fraction)));
  }
  absl::StrAppendFormat(text, " max %-6s mean %s\n", ShortTime(times.largest()), ShortTime(times.mean()));
}

void AppendWorkload(const WorkloadResult& result, bool is_open, double seconds, std::string* text) {
  const auto rate = [seconds](int64_t count) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; };
  absl::StrAppendFormat(text, "  ok %d, refused %d, failed %d", result.ok, result.refused(), result.failed());
  for (const auto& [count, what] : {std::pair(result.cancelled, "cancelled"),
                                    {result.disconnected, "disconnected"},
                                    {result.unfinished, "unfinished"}}) {
    if (count > 0) absl::StrAppend(text, ", ", what, " ", count);
  }
  absl::StrAppendFormat(text, "; %s/s sent, %s/s received\n", ShortBytes(rate(result.sent_bytes)),
                        ShortBytes(rate(result.received_bytes)));
  if (result.ok > 0) {
    AppendTimes("latency", result.latency, text);
    if (is_open) AppendTimes("unsent", result.unsent, text);
    AppendTimes("queue", result.queue, text);
    if (result.compile.largest() > absl::ZeroDuration()) AppendTimes("compile", result.compile, text);
    AppendTimes("run", result.run, text);
    AppendTimes("rest", result.rest, text);
  }
  for (const auto& [failure, calls] : result.failures) {
    const auto& [code, reason] = failure;
    absl::StrAppendFormat(text, "  %d x %s%s\n", calls.count, absl::StatusCodeToString(code),
                          reason.empty() ? "" : absl::StrCat(" ", reason));
    AppendTimes("answered", calls.answered, text);
  }
}

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

void SetTimes(const LatencyHistogram& times, google::protobuf::Value* value) {
  Fields& fields = *value->mutable_struct_value()->mutable_fields();
  for (const QuantileName& quantile : kQuantiles) {
    fields[quantile.name].set_number_value(Milliseconds(times.Quantile(quantile.fraction)));
  }
  fields["max"].set_number_value(Milliseconds(times.largest()));
  fields["mean"].set_number_value(Milliseconds(times.mean()));
}

void SetCount(Fields& fields, const char* name, int64_t count) {
  fields[name].set_number_value(static_cast<double>(count));
}

void SetWorkload(const WorkloadResult& result, Fields& fields) {
  SetCount(fields, "ok", result.ok);
  SetCount(fields, "refused", result.refused());
  SetCount(fields, "failed", result.failed());
  SetCount(fields, "cancelled", result.cancelled);
  SetCount(fields, "disconnected", result.disconnected);
  SetCount(fields, "unfinished", result.unfinished);
  SetCount(fields, "sent_bytes", result.sent_bytes);
  SetCount(fields, "received_bytes", result.received_bytes);
  SetTimes(result.latency, &fields["latency_ms"]);
  SetTimes(result.unsent, &fields["unsent_ms"]);
  SetTimes(result.queue, &fields["queue_ms"]);
  SetTimes(result.compile, &fields["compile_ms"]);
  SetTimes(result.run, &fields["run_ms"]);
  SetTimes(result.rest, &fields["rest_ms"]);
  SetTimes(result.refusals(), &fields["refusals_ms"]);
  auto* failures = fields["failures"].mutable_list_value();
  for (const auto& [failure, calls] : result.failures) {
    Fields& entry = *failures->add_values()->mutable_struct_value()->mutable_fields();
    entry["code"].set_string_value(absl::StatusCodeToString(std::get<0>(failure)));
    entry["reason"].set_string_value(std::get<1>(failure));
    SetCount(entry, "count", calls.count);
    SetTimes(calls.answered, &entry["answered_ms"]);
  }
}

// Sets the figures of every run, under the names that other load generators have for them.
void SetSummary(const BenchRun& run, Fields& fields) {
  const load::LoadResult& result = run.result;
  const WorkloadResult total = result.Total();
  const double seconds = absl::ToDoubleSeconds(result.measured);
  const int64_t errors = total.refused() + total.failed();
  const int64_t requests = total.ok + errors + total.cancelled + total.disconnected + total.unfinished;
  fields["requests_per_second"].set_number_value(seconds > 0 ? static_cast<double>(requests) / seconds : 0);
  fields["goodput_per_second"].set_number_value(result.goodput());
  fields["peak_per_second"].set_number_value(run.overload.has_value() ? run.overload->peak_goodput : result.goodput());
  fields["p50_ms"].set_number_value(Milliseconds(total.latency.Quantile(0.5)));
  fields["p99_ms"].set_number_value(Milliseconds(total.latency.Quantile(0.99)));
  SetCount(fields, "errors", errors);
}

}  // namespace

std::string RunTitle(const BenchRun& run) {
  std::string title = absl::StrCat(run.workload, ", ");
  if (run.rate.has_value()) {
    absl::StrAppendFormat(&title, "open loop of %.6g/s", *run.rate);
  } else {
    absl::StrAppend(&title, "closed loop of ", run.concurrency);
  }
  absl::StrAppend(&title, " on ", run.connections, run.connections == 1 ? " connection" : " connections");
  return title;
}

std::string ProgressText(const load::LoadProgress& progress, absl::string_view title) {
  return absl::StrCat(absl::FormatDuration(absl::Trunc(progress.passed, absl::Seconds(1))), " of ",
                      absl::FormatDuration(progress.whole), ", ", ShortCount(static_cast<double>(progress.ok)), " ok, ",
                      ShortCount(static_cast<double>(progress.not_ok)), " not: ", title);
}

std::string RunText(const BenchRun& run) {
  const load::LoadResult& result = run.result;
  const double seconds = absl::ToDoubleSeconds(result.measured);
  std::string text = absl::StrFormat("%s%s\n  %.6g/s succeeded in %.3gs; this program took %.2g cores\n", RunTitle(run),
                                     result.is_interrupted   ? " (interrupted)"
                                     : result.is_server_gone ? " (the server is gone)"
                                                             : "",
                                     result.goodput(), seconds, result.client_cores);
  if (run.overload.has_value()) {
    absl::StrAppendFormat(&text, "  goodput is %.3g of the peak, %.6g/s in a closed loop of %d\n",
                          run.overload->goodput_ratio, run.overload->peak_goodput, run.overload->peak_concurrency);
  }
  if (result.never_sent > 0) {
    absl::StrAppend(&text, "  never sent: ", result.never_sent,
                    ", as too many were under way or this program is too slow\n");
  }
  if (result.failed_dials > 0)
    absl::StrAppend(&text, "  connections that could not be made: ", result.failed_dials, "\n");
  AppendWorkload(result.Total(), run.rate.has_value(), seconds, &text);
  if (result.workloads.size() == 1) return text;
  for (const WorkloadResult& workload : result.workloads) {
    absl::StrAppend(&text, " ", workload.name, "\n");
    AppendWorkload(workload, run.rate.has_value(), seconds, &text);
  }
  return text;
}

google::protobuf::Struct RunJson(const BenchRun& run) {
  google::protobuf::Struct json;
  Fields& fields = *json.mutable_fields();
  const load::LoadResult& result = run.result;
  fields["workload"].set_string_value(run.workload);
  fields["loop"].set_string_value(run.rate.has_value() ? "open" : "closed");
  if (run.rate.has_value()) {
    fields["rate"].set_number_value(*run.rate);
  } else {
    SetCount(fields, "concurrency", run.concurrency);
  }
  SetCount(fields, "connections", run.connections);
  fields["seconds"].set_number_value(absl::ToDoubleSeconds(result.measured));
  fields["goodput"].set_number_value(result.goodput());
  fields["client_cores"].set_number_value(result.client_cores);
  fields["interrupted"].set_bool_value(result.is_interrupted);
  SetCount(fields, "never_sent", result.never_sent);
  SetCount(fields, "failed_dials", result.failed_dials);
  if (run.overload.has_value()) {
    SetCount(fields, "peak_concurrency", run.overload->peak_concurrency);
    fields["peak_goodput"].set_number_value(run.overload->peak_goodput);
    fields["goodput_ratio"].set_number_value(run.overload->goodput_ratio);
  }
  SetWorkload(result.Total(), fields);
  SetSummary(run, fields);
  auto* workloads = fields["workloads"].mutable_list_value();
  for (const WorkloadResult& workload : result.workloads) {
    Fields& entry = *workloads->add_values()->mutable_struct_value()->mutable_fields();
    entry["workload"].set_string_value(workload.name);
    SetWorkload(workload, entry);
  }
  return json;
}

void AddRunJson(const google::protobuf::Struct& run, google::protobuf::Struct* json) {
  Fields& fields = *json->mutable_fields();
  const double peak_before = fields["peak_per_second"].number_value();
  for (const char* name :
       {"requests_per_second", "goodput_per_second", "peak_per_second", "p50_ms", "p99_ms", "errors"}) {
    fields[name] = run.fields().at(name);
  }
  if (fields["peak_per_second"].number_value() < peak_before) fields["peak_per_second"].set_number_value(peak_before);
  *fields["runs"].mutable_list_value()->add_values()->mutable_struct_value() = run;
}

std::vector<std::string> MissedGates(const BenchRun& run, const BenchGates& gates) {
  std::vector<std::string> missed;
  const WorkloadResult total = run.result.Total();
  // `unanswered` calls took longer than any limit.
  const auto check_p99 = [&](const LatencyHistogram& times, int64_t unanswered,
                             const std::optional<absl::Duration>& largest, absl::string_view what) {
    const int64_t all = times.count() + unanswered;
    if (!largest.has_value() || all == 0) return;
    if (100 * unanswered > all) {
      missed.push_back(absl::StrCat("the p99 of ", what, " is more than any limit, as ", unanswered, " of ", all,
                                    " calls failed, did not end or were never sent: ", RunTitle(run)));
      return;
    }
    const absl::Duration p99 = times.Quantile(0.99 * static_cast<double>(all) / static_cast<double>(times.count()));
    if (p99 <= *largest) return;
    missed.push_back(absl::StrCat("the p99 of ", what, " is ", ShortTime(p99), ", more than ", ShortTime(*largest),
                                  ": ", RunTitle(run)));
  };
  if (total.ok == 0) missed.push_back(absl::StrCat("no call succeeded: ", RunTitle(run)));
  // Refusals have a gate of their own.
  check_p99(total.latency, total.failed() + total.unfinished + run.result.never_sent, gates.largest_p99, "latency");
  check_p99(total.refusals(), 0, gates.largest_refusal_p99, "refusals");
  if (gates.least_goodput_ratio.has_value() && run.overload.has_value() &&
      run.overload->goodput_ratio < *gates.least_goodput_ratio) {
    missed.push_back(absl::StrFormat("goodput is %.3g of the peak, less than %.3g: %s", run.overload->goodput_ratio,
                                     *gates.least_goodput_ratio, RunTitle(run)));
  }
  return missed;
}

}  // namespace tensord::cli

#include "clients/cli/shell/console.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/shell/json_text.h"
#include "clients/cli/shell/printable_text.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/error_detail.h"

namespace tensord::cli {
namespace {

using client::ErrorDetail;

std::string DetailLines(const ErrorDetail& detail) {
  std::string lines;
  const auto append = [&lines](absl::string_view label, absl::string_view value) {
    if (!value.empty()) absl::StrAppend(&lines, "  ", label, ": ", PrintableLine(value), "\n");
  };
  append("reason", detail.reason);
  append("node", detail.node);
  append("op", detail.op);
  if (!detail.limit.empty()) {
    append("limit", absl::StrCat(detail.limit, " = ", detail.limit_value, ", request ", detail.actual_value));
  }
  if (detail.retry_after.has_value()) append("retry after", absl::FormatDuration(*detail.retry_after));
  return lines;
}

void AddFailure(const absl::Status& status, const std::optional<ErrorDetail>& detail,
                google::protobuf::Struct* result) {
  auto& error = *(*result->mutable_fields())["error"].mutable_struct_value()->mutable_fields();
  error["code"].set_string_value(absl::StatusCodeToString(status.code()));
  error["message"].set_string_value(std::string(status.message()));
  if (!detail.has_value()) return;
  error["reason"].set_string_value(detail->reason);
  error["node"].set_string_value(detail->node);
  error["op"].set_string_value(detail->op);
  if (!detail->limit.empty()) {
    error["limit"].set_string_value(detail->limit);
    error["limit_value"].set_number_value(static_cast<double>(detail->limit_value));
    error["actual_value"].set_number_value(static_cast<double>(detail->actual_value));
  }
  if (detail->retry_after.has_value()) {
    error["retry_after_seconds"].set_number_value(absl::ToDoubleSeconds(*detail->retry_after));
  }
}

}  // namespace

void Console::Print(absl::string_view text) { out_ << PrintableText(text); }

int Console::PrintJson(const google::protobuf::Message& message) {
  out_ << JsonText(message, JsonLayout::kIndented);
  return kExitOk;
}

int Console::PrintJsonLine(const google::protobuf::Message& message) {
  out_ << JsonText(message, JsonLayout::kOneLine);
  return kExitOk;
}

int Console::Fail(const absl::Status& status, google::protobuf::Struct result) {
  const std::optional<ErrorDetail> detail = client::GetErrorDetail(status);
  err_ << "tensordctl: " << absl::StatusCodeToString(status.code()) << ": " << PrintableText(status.message()) << "\n";
  if (detail.has_value()) err_ << DetailLines(*detail);
  if (absl::IsDeadlineExceeded(status)) err_ << "  --deadline=TIME gives the server longer to answer\n";
  if (is_json_) {
    AddFailure(status, detail, &result);
    PrintJson(result);
  }
  return kExitFailed;
}

void Console::Hint(absl::string_view line) { err_ << "  " << PrintableLine(line) << "\n"; }

void Console::Complain(absl::string_view line) { err_ << "tensordctl: " << PrintableText(line) << "\n"; }

int Console::Usage(absl::string_view command, absl::string_view message) {
  const std::string name = command.empty() ? "tensordctl" : absl::StrCat("tensordctl ", command);
  err_ << name << ": " << PrintableText(message) << "\nTry: " << name << " --help\n";
  return kExitUsage;
}

}  // namespace tensord::cli

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/short_text.h"
#include "clients/cli/shell/table.h"

namespace tensord::cli {
namespace {

constexpr size_t kShownDigits = 12;

std::string CallsText(const v1::ListCallsResponse& calls) {
  Table table({"CALL", ">AGE", "METHOD", "STAGE", "TENANT", "PROGRAM", "DEVICE", "PEER", "REQUEST"});
  for (const v1::CallEntry& call : calls.calls()) {
    const absl::Duration age = absl::Seconds(call.age().seconds()) + absl::Nanoseconds(call.age().nanos());
    table.Add({call.id(), ShortTime(age), call.method(), call.stage(), call.tenant(),
               call.fingerprint().substr(0, kShownDigits), call.device(), call.peer(),
               absl::StrCat(call.request_id(), call.streamed() ? " (of a stream)" : "")});
  }
  return table.Text();
}

int Cancel(client::AdminClient& admin, const std::vector<std::string>& ids, Console& console) {
  for (const std::string& id : ids) {
    const absl::Status cancelled = admin.CancelCall(id);
    if (!cancelled.ok()) return console.Fail(cancelled);
    if (!console.is_json()) console.out() << "cancelled " << id << "\n";
  }
  return console.is_json() ? console.PrintJson(v1::CancelCallResponse()) : kExitOk;
}

int Calls(const Arguments& arguments, Console& console) {
  const std::vector<std::string> cancelled = arguments.Values("cancel");
  v1::ListCallsRequest request;
  request.set_tenant(arguments.Value("tenant").value_or(""));
  if (!cancelled.empty() && !request.tenant().empty()) {
    return console.Usage("calls", "--tenant goes with the list, not with --cancel");
  }
  return WithAdmin("calls", arguments, console, [&](client::AdminClient& admin) {
    if (!cancelled.empty()) return Cancel(admin, cancelled, console);
    const absl::StatusOr<v1::ListCallsResponse> calls = admin.ListCalls(request);
    if (!calls.ok()) return console.Fail(calls.status());
    if (console.is_json()) return console.PrintJson(*calls);
    console.out() << CallsText(*calls);
    if (calls->count() > calls->calls_size()) {
      console.out() << "and " << calls->count() - calls->calls_size() << " younger ones\n";
    }
    return kExitOk;
  });
}

}  // namespace

Command CallsCommand() {
  std::vector<FlagSpec> flags = {{.name = "cancel",
                                  .placeholder = "ID",
                                  .help = "End the call of that id instead of listing all; its client is told",
                                  .is_repeatable = true},
                                 {.name = "tenant", .placeholder = "NAME", .help = "List this tenant's calls alone"}};
  for (FlagSpec& flag : AdminFlags()) flags.push_back(std::move(flag));
  return {
      .name = "calls",
      .operands = "",
      .summary = "List the calls in progress, the oldest first, or end one",
      .details =
          "The peer of a unix socket is its process and user. A call that holds a device is in the stage compute, one "
          "that waits for it in queue.\n",
      .flags = std::move(flags),
      .run = &Calls};
}

}  // namespace tensord::cli

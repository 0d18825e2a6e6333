#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/short_text.h"

namespace tensord::cli {
namespace {

constexpr size_t kShownDigits = 12;

std::string CallLine(const v1::CallEntry& call) {
  const absl::Duration age = absl::Seconds(call.age().seconds()) + absl::Nanoseconds(call.age().nanos());
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  return absl::StrFormat("%-8s %8s %-13s %-12s %-16s %-12s %-8s %-32s %s%s\n", call.id(), ShortTime(age), call.method(),
                         call.stage(), shown(call.tenant()), shown(call.fingerprint().substr(0, kShownDigits)),
                         shown(call.device()), shown(call.peer()), call.request_id(),
                         call.streamed() ? " (of a stream)" : "");
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
    for (const v1::CallEntry& call : calls->calls()) console.out() << CallLine(call);
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
          "One line each: id, age, method, where it is, tenant, program, device, peer (of a unix socket its process\n"
          "and user), request id. Who holds a device is in compute; who waits for it is in queue.\n",
      .flags = std::move(flags),
      .run = &Calls};
}

}  // namespace tensord::cli

#ifndef TENSORD_ADMIN_CLIENT_H_
#define TENSORD_ADMIN_CLIENT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tensord/client.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::client {

// A connection to the listener of a server's operators. Thread-safe; calls block. A failed call has the server's
// canonical code and message; GetErrorDetail gives the details.
class AdminClient {
 public:
  // The target has no default. UNAVAILABLE if no server answers in time.
  static absl::StatusOr<std::unique_ptr<AdminClient>> Connect(ConnectOptions options);
  ~AdminClient();

  // All pages as one.
  absl::StatusOr<v1::ListProgramsResponse> ListPrograms();
  // Evicts programs; returns how many there were.
  absl::StatusOr<int64_t> EvictPrograms(const v1::EvictProgramsRequest& request);
  // Releases programs from quarantine; returns how many were there.
  absl::StatusOr<int64_t> ReleasePrograms(const v1::ReleaseProgramsRequest& request);
  // Returns the calls in progress, the oldest first.
  absl::StatusOr<v1::ListCallsResponse> ListCalls(const v1::ListCallsRequest& request);
  // Ends one, by its id.
  absl::Status CancelCall(absl::string_view id);
  absl::StatusOr<v1::ListSessionsResponse> ListSessions();
  absl::Status CloseSession(absl::string_view session);
  absl::StatusOr<v1::DumpFlightRecorderResponse> DumpFlightRecorder(const v1::DumpFlightRecorderRequest& request);
  absl::Status SetLogLevel(absl::string_view level);
  // Makes the server take no new work from now on, end its current work, within the timeout if one is given, and stop.
  absl::Status Drain(std::optional<absl::Duration> timeout);
  // Samples the functions in which the server's threads spend the processor, for as long as the request says; returns
  // when that is over.
  absl::StatusOr<v1::CaptureProfileResponse> CaptureProfile(const v1::CaptureProfileRequest& request);
  // Any method of the listener, "/grpc.channelz.v1.Channelz/GetServers", with the bytes of its messages.
  absl::StatusOr<std::string> CallRaw(const std::string& method, const std::string& request);

 private:
  struct Stub;
  AdminClient(ConnectOptions options, std::unique_ptr<Stub> stub);

  const ConnectOptions options_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace tensord::client

#endif  // TENSORD_ADMIN_CLIENT_H_

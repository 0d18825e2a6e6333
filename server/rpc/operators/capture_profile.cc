#include <string>
#include <utility>

#include "engine/base/refusal.h"
#include "proto/codec/duration_codec.h"
#include "server/profiling/profiler.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {

void HandleCaptureProfile(UnaryCall* call) {
  v1::CaptureProfileRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  Profiler::Request wanted;
  wanted.cancel = call->cancel();
  if (request.has_duration()) {
    const absl::StatusOr<absl::Duration> duration = codec::DecodeDuration(request.duration());
    if (!duration.ok()) return call->Fail(duration.status());
    wanted.duration = *duration;
  }
  if (request.samples_per_second() != 0) wanted.samples_per_second = request.samples_per_second();
  const absl::Status started =
      call->parts().observers.profiler->Start(std::move(wanted), [call](const Profiler::Result& result) {
        call->Continue([&] {
          v1::CaptureProfileResponse response;
          response.set_profile(result.profile.SerializeAsString());
          response.set_sample_count(result.samples);
          response.set_dropped_count(result.dropped);
          call->Reply(response);
        });
      });
  if (!started.ok()) call->Fail(started);
}

}  // namespace tensord::server

#ifndef TENSORD_SERVER_RPC_EXECUTE_EXECUTE_STREAM_H_
#define TENSORD_SERVER_RPC_EXECUTE_EXECUTE_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/lifecycle/added_bytes.h"
#include "server/lifecycle/call_gate.h"
#include "server/lifecycle/stall_alarm.h"
#include "server/observe/records/request_record.h"
#include "server/rpc/calls/served_call.h"
#include "server/rpc/execute/received_execute.h"

namespace tensord::server {

class StreamedRequest;

// One ExecuteStream call: requests in, responses out in the order in which they are ready. Requests are in flight from
// their arrival until their response is sent; at the settings' bounds of requests or bytes no more are read. A failing
// request fails in its response, and the stream goes on. Bytes that are no request end it, after the requests in
// flight; so does a request whose caller is no longer admitted. A client without a deadline that takes less than 1 MiB
// of a response, or its rest, in limits.default_deadline_ms is cancelled. Owns itself: gRPC and its requests hold it.
//
//   reading → ending (half closed, a request that cannot be taken, the server drains, the client is gone) → finished
//
// Thread-safe. gRPC is called by one thread at a time, under no lock (see Step).
class ExecuteStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public DrainWatcher,
                            public std::enable_shared_from_this<ExecuteStream> {
 public:
  // Starts the call, and returns gRPC's reactor of it. The parts outlive the call.
  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Start(const ServiceParts& parts,
                                                                            grpc::CallbackServerContext* context);
  ExecuteStream(const ServiceParts& parts, grpc::CallbackServerContext* context);

  void OnDrain() override;

 private:
  friend class StreamedRequest;

  // The resources of a request in flight.
  struct Place {
    int64_t bytes = 0;
    int64_t objects = 0;                           // bytes of what reading it makes
    bool is_measured = false;                      // else the objects are not known yet
    bool has_room = false;                         // its bytes, at the gate, since before it was read
    bool entered = false;                          // the gate
    std::shared_ptr<const AddedBytes> held_bytes;  // null: the gate has them for this alone
  };
  // A request that was read, and the refusal of it as a whole, if any.
  struct Taken {
    StreamedRequest* request = nullptr;
    ReceivedExecute received;
    absl::Status refused;
  };
  struct Response {
    grpc::ByteBuffer bytes;
    Place place;
    std::shared_ptr<const AddedBytes> unread_bytes;  // null: few, or no result
    RequestRecord record;                            // of the request, until its response is sent
  };
  enum class Action : uint8_t { kNone, kRead, kWrite, kFinish };

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Admits the request that has come in, which is in flight from then on; false if it is refused.
  bool Admit(Place* place);
  // Tells whether it is not read in a reaction.
  bool IsLong(Place* place) const;
  // Counts its bytes in until it leaves. If there is no room for them, nothing may wait with them.
  bool MakeRoom(Place* place) const;
  // Has it taken in a turn of the tenant. If there is no turn, the stream, which reads no further meanwhile, asks again
  // a little later.
  void TakeInTurn(const Place& place, const StageTimes& stages);
  // Ends the stream instead, for whom nobody waits any more.
  void Drop(Place place, const absl::Status& status);
  void Take(Place place, StageTimes stages);
  // The next request may be read: it must not overtake this one on its way to the session.
  void EndRead();
  // Reads it, which is in flight already. A refusal ends the stream: nobody can say whose response it would be.
  absl::StatusOr<Taken> Read(grpc::ByteBuffer* bytes, Place* place, StageTimes stages);
  // A request's answer. `id` is free again, unless it was another's.
  void Answer(Response response, uint64_t id, bool owns_id);
  // Counts a request whose response is sent, or will never be, and writes its line in the log.
  void Tell(RequestRecord record) const;

  // Does the next work with gRPC, until there is none. A caller that comes while another thread does so leaves it to
  // that thread. After some steps, of whatever threads, a turn of the tenant takes over, so that no thread goes on for
  // as long as the client sends.
  void Step();
  void StepOn();
  Action NextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveLocked(Place& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoomLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Responses that the client does not take may not keep the memory of results for ever.
  void WatchProgress(grpc::CallbackServerContext* context);
  // Returns the client's time for so many bytes, beyond its time for a few: the time of as many chunks of GetTensor.
  absl::Duration TimeOfMore(size_t bytes) const;

  ServedCall call_;
  std::shared_ptr<StallAlarm> stall_;  // at rest while nothing is being sent; null: the client has a deadline
  const std::string peer_;
  std::shared_ptr<ExecuteStream> self_;  // while gRPC may call
  grpc::ByteBuffer incoming_;            // gRPC's while it reads
  grpc::ByteBuffer outgoing_;            // gRPC's while it writes

  uint64_t steps_ = 0;  // of who is stepping

  Mutex mutex_;
  bool stepping_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // no more is read
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // no more can be written
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // what the call ends with
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<uint64_t> ids_ ABSL_GUARDED_BY(mutex_);  // of the requests that have no answer yet
  std::deque<Response> responses_ ABSL_GUARDED_BY(mutex_);     // ready to be sent
  Response being_sent_ ABSL_GUARDED_BY(mutex_);                // but for its bytes, which are gRPC's
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTE_STREAM_H_

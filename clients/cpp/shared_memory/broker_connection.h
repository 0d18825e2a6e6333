#ifndef TENSORD_CLIENTS_CPP_SHARED_MEMORY_BROKER_CONNECTION_H_
#define TENSORD_CLIENTS_CPP_SHARED_MEMORY_BROKER_CONNECTION_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/v1/shared_memory.pb.h"

namespace tensord::client {

// The connection to the socket at which a server hands out shared memory. One request is under way at a time, and every
// wait has an end. A wait that is over leaves its answer still to come. Until the answer has come, all others are
// refused at once, so that a stuck server costs one wait. Owns the socket; thread-safe.
class BrokerConnection {
 public:
  // The longest wait, whatever the deadline. A region of many GiB, whose pages the server takes first, is there by
  // then.
  static constexpr absl::Duration kMostWait = absl::Seconds(10);

  // The owner closes the descriptor.
  struct Region {
    std::string id;
    int descriptor = -1;
    int64_t size_bytes = 0;
  };

  // Fails with UNAVAILABLE if nobody takes the connection by then.
  static absl::StatusOr<std::unique_ptr<BrokerConnection>> Connect(const std::string& path, std::string authorization,
                                                                   absl::Time deadline);
  ~BrokerConnection();
  BrokerConnection(const BrokerConnection&) = delete;
  BrokerConnection& operator=(const BrokerConnection&) = delete;

  // Returns the server's refusal; DEADLINE_EXCEEDED if it does not answer in time; UNAVAILABLE if it has gone, or still
  // owes an answer.
  absl::StatusOr<Region> Allocate(size_t size_bytes, absl::Time deadline);
  // Frees the region now, or after the request under way, or when the owed answer has come.
  void Free(const std::string& region);
  // Tells whether the server has closed it; its regions are gone then.
  bool HasHungUp() const;

 private:
  struct Answer {
    v1::SharedMemoryReply reply;
    int descriptor = -1;
  };

  BrokerConnection(std::string path, int socket, std::string authorization)
      : path_(std::move(path)), socket_(socket), authorization_(std::move(authorization)) {}

  // Enter begins a request of this thread, and Leave ends it.
  bool Enter(absl::Time deadline);
  void Leave(absl::Time deadline);
  void TakeOwedAnswer();
  absl::StatusOr<Answer> Exchange(const v1::SharedMemoryRequest& request, absl::Time deadline);
  absl::StatusOr<Answer> Receive(absl::Time deadline);
  absl::Status Late() const;
  absl::Status Gone(const char* why) const;

  const std::string path_;
  const int socket_;
  const std::string authorization_;
  bool owes_ = false;  // of the thread that asks: the answer to a request for which nobody waits any more is to come
  std::mutex mutex_;
  std::condition_variable left_;
  bool is_asking_ = false;
  std::vector<std::string> unwanted_;  // regions to be freed
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_SHARED_MEMORY_BROKER_CONNECTION_H_

#ifndef TENSORD_SERVER_SHARED_MEMORY_BROKER_TURNS_H_
#define TENSORD_SERVER_SHARED_MEMORY_BROKER_TURNS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "server/shared_memory/broker_client.h"

namespace tensord::server {

// The work of a broker's thread for a connection.
struct BrokerRequest {
  int connection = -1;
  BrokerClient* client = nullptr;
  BrokerClient::Wanted wanted;
  // The connection is over: it goes, with its client, whose regions go first.
  std::unique_ptr<BrokerClient> gone;
  bool goes_on = false;  // once it is answered: whether the connection does
};

// Requests that wait for a thread: those of a tenant in the order in which they came, tenants in turn. Making or
// dropping the pages of a large region takes long, so a thread for small work can ask for small requests only.
// Thread-safe; at most as many wait as there are connections.
class BrokerTurns {
 public:
  // Takes less than a millisecond.
  static constexpr int64_t kSmallBytes = int64_t{1} << 20;

  void Push(BrokerRequest request);
  // Waits for a request, of at most kSmallBytes if `small_only`. Nothing: it is closed.
  std::optional<BrokerRequest> Take(bool small_only);
  // Closes the queue: nobody gets requests any more; returns the rest.
  std::vector<BrokerRequest> Close();

 private:
  using Waiting = std::map<std::string, std::deque<BrokerRequest>>;  // by tenant; those with any

  std::optional<BrokerRequest> TakeLocked(bool small_only) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
  std::string last_ ABSL_GUARDED_BY(mutex_);  // whose turn it was
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_BROKER_TURNS_H_

#ifndef TENSORD_SERVER_RPC_PROGRAMS_UNSERVED_PROGRAMS_H_
#define TENSORD_SERVER_RPC_PROGRAMS_UNSERVED_PROGRAMS_H_

#include <chrono>
#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// Programs on disk that this server was found not to serve, remembered for a while: to read one again only to refuse it
// again costs as much as its graph is large, and a client may name it any number of times. Beyond a bound programs are
// not remembered. Thread-safe.
class UnservedPrograms {
 public:
  static constexpr size_t kMost = 1024;
  using Time = std::chrono::steady_clock::time_point;

  void Add(const Fingerprint& fingerprint, Time now, absl::Duration keep);
  bool Has(const Fingerprint& fingerprint, Time now);

 private:
  Mutex mutex_;
  absl::flat_hash_map<Fingerprint, Time> until_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAMS_UNSERVED_PROGRAMS_H_

#ifndef TENSORD_CLIENTS_CPP_CALLS_SESSION_PLACES_H_
#define TENSORD_CLIENTS_CPP_CALLS_SESSION_PLACES_H_

#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace tensord::client {

// Keys that lead to the servers of a client's open sessions. Thread-safe.
class SessionPlaces {
 public:
  void Add(const std::string& session, std::string route) {
    const std::lock_guard<std::mutex> lock(mutex_);
    places_[session] = std::move(route);
  }
  // Returns the session's key, empty if another client opened it.
  std::string RouteOf(const std::string& session) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(session);
    return found == places_.end() ? "" : found->second;
  }
  void Remove(const std::string& session) {
    const std::lock_guard<std::mutex> lock(mutex_);
    places_.erase(session);
  }

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::string> places_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_SESSION_PLACES_H_

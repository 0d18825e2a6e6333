#ifndef TENSORD_CLIENTS_CPP_SESSION_PLACES_H_
#define TENSORD_CLIENTS_CPP_SESSION_PLACES_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace tensord::client {

// Where a session is, or a stream of calls outside of one: the key that leads to its server, and by which fingerprints
// that knows programs, as far as it was asked. Thread-safe.
class SessionPlace {
 public:
  explicit SessionPlace(std::string route) : route_(std::move(route)) {}

  const std::string& route() const { return route_; }
  std::optional<std::string> Find(const std::string& fingerprint) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = programs_.find(fingerprint);
    return found == programs_.end() ? std::nullopt : std::optional(found->second);
  }
  void Learn(const std::string& fingerprint, const std::string& there) {
    const std::lock_guard<std::mutex> lock(mutex_);
    programs_[fingerprint] = there;
  }

 private:
  const std::string route_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::string> programs_;
};

// Those of the sessions that a client has opened, until it closes them. Thread-safe.
class SessionPlaces {
 public:
  void Add(const std::string& session, std::string route) {
    const std::lock_guard<std::mutex> lock(mutex_);
    places_[session] = std::make_shared<SessionPlace>(std::move(route));
  }
  // Null: another client opened it.
  std::shared_ptr<SessionPlace> Find(const std::string& session) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(session);
    return found == places_.end() ? nullptr : found->second;
  }
  std::string RouteOf(const std::string& session) const {
    const std::shared_ptr<SessionPlace> place = Find(session);
    return place == nullptr ? "" : place->route();
  }
  void Remove(const std::string& session) {
    const std::lock_guard<std::mutex> lock(mutex_);
    places_.erase(session);
  }

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<SessionPlace>> places_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_SESSION_PLACES_H_

#include "server/shared_memory/broker_turns.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensord::server {

void BrokerTurns::Push(BrokerRequest request) {
  {
    MutexLock lock(&mutex_);
    std::string tenant = request.wanted.tenant;
    waiting_[std::move(tenant)].push_back(std::move(request));
  }
  changed_.SignalAll();  // the one that is woken may do only small ones
}

std::optional<BrokerRequest> BrokerTurns::Take(bool small_only) {
  MutexLock lock(&mutex_);
  while (!closed_) {
    if (std::optional<BrokerRequest> request = TakeLocked(small_only)) return request;
    changed_.Wait(&mutex_);
  }
  return std::nullopt;
}

std::optional<BrokerRequest> BrokerTurns::TakeLocked(bool small_only) {
  const auto fits = [small_only](const BrokerRequest& request) {
    return !small_only || request.wanted.size_bytes <= kSmallBytes;
  };
  // Once around, from behind the tenant whose turn it was.
  auto tenant = waiting_.upper_bound(last_);
  for (size_t i = 0; i < waiting_.size(); ++i, ++tenant) {
    if (tenant == waiting_.end()) tenant = waiting_.begin();
    std::deque<BrokerRequest>& requests = tenant->second;
    const auto found = std::find_if(requests.begin(), requests.end(), fits);
    if (found == requests.end()) continue;
    BrokerRequest request = std::move(*found);
    requests.erase(found);
    last_ = tenant->first;
    if (requests.empty()) waiting_.erase(tenant);
    return request;
  }
  return std::nullopt;
}

std::vector<BrokerRequest> BrokerTurns::Close() {
  std::vector<BrokerRequest> left;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    for (auto& [tenant, requests] : waiting_) std::move(requests.begin(), requests.end(), std::back_inserter(left));
    waiting_.clear();
  }
  changed_.SignalAll();
  return left;
}

}  // namespace tensord::server

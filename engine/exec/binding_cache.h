#ifndef TENSORD_ENGINE_EXEC_BINDING_CACHE_H_
#define TENSORD_ENGINE_EXEC_BINDING_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/awaited_result.h"
#include "engine/exec/backend.h"
#include "engine/exec/binding_stats.h"
#include "engine/exec/bound_program.h"

namespace tensord {

// What all sizes of a program follow from.
struct BindingKey {
  std::vector<ConcreteType> arguments;
  std::vector<int64_t> run_time_sizes;
  friend bool operator==(const BindingKey&, const BindingKey&) = default;
};

// What one program became for the sizes that were used last: `Bound` is a pointer to something shared. Who asks for
// sizes that another is making something for shares that; nobody waits for what others make for other sizes. What
// `make` refuses is told to all who asked, and not kept. Thread-safe; who asks or makes keeps it alive.
template <typename Bound>
class BindingCache {
 public:
  using Make = std::function<absl::StatusOr<Bound>()>;
  using Done = std::function<void(const absl::StatusOr<Bound>&)>;
  // Has the work dropped where it waits still.
  using Drop = std::function<void()>;
  // Has the work done on another thread, or refuses to.
  using Submit = std::function<absl::StatusOr<Drop>(std::function<void()> work)>;
  // For who waits no more: then `done` is not called, unless that has begun, and what nobody else waits for is dropped
  // or broken off. Null where nothing is waited for. The cache must be there still.
  using Leave = std::function<void()>;
  using Measure = int64_t (*)(const Bound&);

  // `measure` gives the bytes of one that is kept; null: they are not counted. Who is counted nowhere has no kind.
  BindingCache(const BindingOptions& options, SizedKind kind, Measure measure = nullptr)
      : options_(options), kind_(kind), measure_(measure) {}
  ~BindingCache() {
    if (options_.stats != nullptr) options_.stats->AddKept(kind_, -static_cast<int64_t>(bindings_.size()), -bytes_);
  }

  // Null where it is not here.
  Bound Find(const BindingKey& key) {
    MutexLock lock(&mutex_);
    return FindLocked(key);
  }

  // Makes it on this thread where it is not here. Where it waits for another who makes it, it ends early with what
  // `check` refuses, which is asked every now and then; null: it waits.
  absl::StatusOr<Bound> FindOrMake(const BindingKey& key, const Make& make, const RunCheck& check = nullptr) {
    std::shared_ptr<AwaitedResult<Bound>> awaited;
    FlightPtr flight;
    {
      MutexLock lock(&mutex_);
      if (Bound found = FindLocked(key); found != nullptr) return found;
      if (const FlightPtr joined = FlightOf(key); joined != nullptr) {
        awaited = std::make_shared<AwaitedResult<Bound>>();
        JoinLocked(joined, [awaited](const absl::StatusOr<Bound>& bound) { awaited->Set(bound); });
        Count(BindingStats::kJoined);
      } else {
        flight = BeginLocked(key);
        flight->is_made_here = true;
      }
    }
    if (awaited != nullptr) return awaited->Wait(check);
    return MakeAndLand(flight, make);
  }

  // The same without waiting, and made where `submit` does it: `done` is called once, before this returns where it is
  // here or `submit` refuses, else by who makes it.
  Leave FindOrSubmit(const BindingKey& key, const Submit& submit, Make make, Done done) {
    absl::StatusOr<Bound> answer = Bound();
    {
      MutexLock lock(&mutex_);
      answer = FindLocked(key);
      if (*answer == nullptr) {
        if (const FlightPtr joined = FlightOf(key); joined != nullptr) {
          Count(BindingStats::kJoined);
          return JoinLocked(joined, std::move(done));
        }
        const FlightPtr flight = BeginLocked(key);
        Leave leave = JoinLocked(flight, std::move(done));
        // Locked, so that nobody joins what is refused.
        absl::StatusOr<Drop> submitted =
            submit([this, flight, make = std::move(make)] { (void)MakeAndLand(flight, make); });
        if (submitted.ok()) {
          flight->drop = *std::move(submitted);
          return leave;
        }
        done = std::move(flight->waiting.front().done);
        std::erase(flights_, flight);
        Count(BindingStats::kRefused);
        answer = submitted.status();
      }
    }
    done(answer);
    return nullptr;
  }

  int64_t bytes() const {
    MutexLock lock(&mutex_);
    return bytes_;
  }

 private:
  struct Binding {
    BindingKey key;
    Bound bound;
    int64_t bytes = 0;
  };
  struct Waiting {
    uint64_t id = 0;
    Done done;
  };
  // One that was submitted and that nobody waits for any more is not among flights_.
  struct Flight {
    BindingKey key;
    std::vector<Waiting> waiting;
    bool is_made_here = false;  // on the thread of one who asked
    Drop drop;
    std::atomic<bool> abandoned{false};
  };
  using FlightPtr = std::shared_ptr<Flight>;

  void Count(BindingStats::Event event) const {
    if (options_.stats != nullptr) options_.stats->Count(kind_, event);
  }

  Bound FindLocked(const BindingKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto it = bindings_.begin(); it != bindings_.end(); ++it) {
      if (!(it->key == key)) continue;
      bindings_.splice(bindings_.begin(), bindings_, it);
      Count(BindingStats::kFound);
      MeasureLocked(&*it);
      return it->bound;
    }
    return nullptr;
  }

  FlightPtr FlightOf(const BindingKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const FlightPtr& flight : flights_) {
      if (flight->key == key) return flight;
    }
    return nullptr;
  }

  FlightPtr BeginLocked(const BindingKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    flights_.push_back(std::make_shared<Flight>());
    flights_.back()->key = key;
    return flights_.back();
  }

  Leave JoinLocked(const FlightPtr& flight, Done done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t id = ++last_waiting_;
    flight->waiting.push_back({.id = id, .done = std::move(done)});
    return [this, joined = std::weak_ptr<Flight>(flight), id] {
      if (const FlightPtr flight = joined.lock(); flight != nullptr) LeaveFlight(flight, id);
    };
  }

  void LeaveFlight(const FlightPtr& flight, uint64_t waiting) {
    Waiting gone;  // without the lock
    {
      MutexLock lock(&mutex_);
      const auto found = std::find_if(flight->waiting.begin(), flight->waiting.end(),
                                      [waiting](const Waiting& w) { return w.id == waiting; });
      if (found == flight->waiting.end()) return;  // it has landed
      gone = std::move(*found);
      flight->waiting.erase(found);
      if (!flight->waiting.empty() || flight->is_made_here) return;
      std::erase(flights_, flight);
    }
    flight->abandoned.store(true, std::memory_order_relaxed);
    flight->drop();
  }

  absl::StatusOr<Bound> MakeAndLand(const FlightPtr& flight, const Make& make) {
    absl::StatusOr<Bound> bound = [&]() -> absl::StatusOr<Bound> {
      try {
        if (flight->is_made_here) return make();
        StopSignal stop(&flight->abandoned);
        const StopSignal::Scope scope(&stop);
        return make();
      } catch (const std::exception& error) {  // a library ran out of memory; whoever waits is to be told
        return Refuse(Refusal::kInternal, absl::StrCat("what was to be made for the sizes failed: ", error.what()));
      }
    }();
    std::list<Binding> evicted;  // destroyed without the lock
    std::vector<Waiting> waiting;
    {
      MutexLock lock(&mutex_);
      waiting = std::exchange(flight->waiting, {});
      // What was broken off may look as if it had succeeded, or failed.
      if (waiting.empty() && !flight->is_made_here) bound = Refuse(Refusal::kCancelled, "nobody waits for it any more");
      std::erase(flights_, flight);
      if (bound.ok()) evicted = KeepLocked(flight->key, *bound);
    }
    Count(bound.ok() ? BindingStats::kMade : BindingStats::kRefused);
    for (const Waiting& waiter : waiting) waiter.done(bound);
    return bound;
  }

  // It may have grown or shrunk since the last use.
  void MeasureLocked(Binding* binding) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (measure_ == nullptr) return;
    const int64_t more = measure_(binding->bound) - binding->bytes;
    if (more == 0) return;
    binding->bytes += more;
    bytes_ += more;
    if (options_.stats != nullptr) options_.stats->AddKept(kind_, 0, more);
  }

  // What had to go for it.
  std::list<Binding> KeepLocked(const BindingKey& key, const Bound& bound) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t before = bytes_, bytes = measure_ == nullptr ? 0 : measure_(bound);
    bindings_.push_front({.key = key, .bound = bound, .bytes = bytes});
    bytes_ += bytes;
    std::list<Binding> evicted;
    while (bindings_.size() > 1 &&
           (static_cast<int64_t>(bindings_.size()) > options_.max_sets || bytes_ > options_.max_bytes)) {
      bytes_ -= bindings_.back().bytes;
      evicted.splice(evicted.end(), bindings_, std::prev(bindings_.end()));
      Count(BindingStats::kEvicted);
    }
    if (options_.stats != nullptr) {
      options_.stats->AddKept(kind_, 1 - static_cast<int64_t>(evicted.size()), bytes_ - before);
    }
    return evicted;
  }

  const BindingOptions options_;
  const SizedKind kind_;
  const Measure measure_;
  mutable Mutex mutex_;
  std::list<Binding> bindings_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::vector<FlightPtr> flights_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

using BoundProgramCache = BindingCache<std::shared_ptr<const BoundProgram>>;

inline int64_t HeldBytesOf(const std::shared_ptr<const BoundProgram>& bound) { return bound->held_bytes(); }

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_CACHE_H_

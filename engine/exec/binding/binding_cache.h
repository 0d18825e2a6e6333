#ifndef TENSORD_ENGINE_EXEC_BINDING_BINDING_CACHE_H_
#define TENSORD_ENGINE_EXEC_BINDING_BINDING_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "engine/base/queued_work.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/base/waiters.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/binding/awaited_result.h"
#include "engine/exec/binding/binding_stats.h"
#include "engine/exec/binding/bound_program.h"

namespace tensord {

// The facts that all sizes of a program follow from.
struct BindingKey {
  std::vector<ConcreteType> arguments;
  std::vector<int64_t> run_time_sizes;
  friend bool operator==(const BindingKey&, const BindingKey&) = default;
};

// The bindings of one program for the last used sizes; `Bound` is a pointer to something shared. Several askers for the
// same sizes share one making; nobody waits for a making for other sizes. A refusal of `make` goes to all who asked,
// and is not kept. A maker on his own thread who is no longer wanted breaks off for himself alone; one of those who
// waited for him starts again. Thread-safe; the asker or maker keeps it alive.
template <typename Bound>
class BindingCache {
 public:
  using Make = std::function<absl::StatusOr<Bound>()>;
  using Done = std::function<void(const absl::StatusOr<Bound>&)>;
  // Ends the waiting: then `done` is not called, unless it has begun already; a making that nobody else waits for is
  // dropped or broken off. Null if there is nothing to wait for. The cache must still exist.
  using Leave = std::function<void()>;
  using Measure = int64_t (*)(const Bound&);

  // `measure` gives the bytes of a kept binding; null: they are not counted. A cache that is counted nowhere has no
  // kind.
  BindingCache(const BindingOptions& options, SizedKind kind, Measure measure = nullptr)
      : options_(options), kind_(kind), measure_(measure) {}
  ~BindingCache() {
    if (options_.stats != nullptr) options_.stats->AddKept(kind_, -static_cast<int64_t>(bindings_.size()), -bytes_);
  }

  // Returns null if it is not here.
  Bound Find(const BindingKey& key) {
    MutexLock lock(&mutex_);
    return FindLocked(key);
  }

  // Finds a binding, or makes it on this thread. Ends early with the refusal of `check`, which is asked every now and
  // then, by a StopSignal: while it waits for another maker, and while it makes it. Null: that of the thread's signal.
  absl::StatusOr<Bound> FindOrMake(const BindingKey& key, const Make& make, const RunCheck& check = nullptr) {
    if (Bound found = Find(key); found != nullptr) return found;
    StopSignal stop(check);
    const StopSignal::Scope scope(check != nullptr ? &stop : StopSignal::Current());
    while (true) {
      std::shared_ptr<AwaitedResult<Bound>> awaited;
      FlightPtr flight;
      Leave leave;
      {
        MutexLock lock(&mutex_);
        if (Bound found = FindLocked(key); found != nullptr) return found;
        flight = FlightOf(key, /*submitted=*/false);
        if (flight != nullptr) {
          awaited = std::make_shared<AwaitedResult<Bound>>();
          leave = JoinLocked(flight, [awaited](const absl::StatusOr<Bound>& bound) { awaited->Set(bound); });
          Count(BindingStats::kJoined);
        } else {
          flight = BeginLocked(key);
        }
      }
      if (awaited == nullptr) return MakeHere(flight, make);
      absl::StatusOr<Bound> bound = awaited->Wait();
      if (!bound.ok()) leave();
      if (!bound.ok() || *bound != nullptr) return bound;
    }
  }

  // Finds a binding without waiting, or has `submit` make it in a turn of the tenant. `done` is called once: before
  // this returns if the binding is here or `submit` refuses, else by the maker. Does not wait for a maker on a thread
  // of his own: he may break it off.
  Leave FindOrSubmit(const BindingKey& key, const std::string& tenant, const QueuedWork::Submit& submit, Make make,
                     Done done) {
    absl::StatusOr<Bound> answer = Bound();
    {
      MutexLock lock(&mutex_);
      answer = FindLocked(key);
      if (*answer == nullptr) {
        FlightPtr flight = FlightOf(key, /*submitted=*/true);
        if (flight != nullptr) {
          Count(BindingStats::kJoined);
          flight->work->QueueFor(tenant, submit).IgnoreError();  // others have it queued
          return JoinLocked(flight, std::move(done));
        }
        flight = BeginLocked(key);
        flight->work =
            std::make_shared<QueuedWork>([this, flight, make = std::move(make)] { Land(flight, MakeOrRefuse(make)); });
        // Locked, so that nobody joins a refused flight.
        const absl::Status queued = flight->work->QueueFor(tenant, submit);
        if (queued.ok()) return JoinLocked(flight, std::move(done));
        flight->work->Abandon();
        std::erase(flights_, flight);
        Count(BindingStats::kRefused);
        answer = queued;
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
  // A making in progress. A submitted one that nobody waits for any more is not among flights_.
  struct Flight {
    BindingKey key;
    Waiters<Done> waiting;
    std::shared_ptr<QueuedWork> work;  // null: it is made on the thread of one who asked
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

  // With `submitted`, finds submitted flights only.
  FlightPtr FlightOf(const BindingKey& key, bool submitted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const FlightPtr& flight : flights_) {
      if (flight->key == key && (flight->work != nullptr || !submitted)) return flight;
    }
    return nullptr;
  }

  FlightPtr BeginLocked(const BindingKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    flights_.push_back(std::make_shared<Flight>());
    flights_.back()->key = key;
    return flights_.back();
  }

  Leave JoinLocked(const FlightPtr& flight, Done done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t id = flight->waiting.Join(std::move(done));
    return [this, joined = std::weak_ptr<Flight>(flight), id] {
      if (const FlightPtr flight = joined.lock(); flight != nullptr) LeaveFlight(flight, id);
    };
  }

  void LeaveFlight(const FlightPtr& flight, uint64_t waiting) {
    std::optional<Done> gone;  // without the lock
    {
      MutexLock lock(&mutex_);
      gone = flight->waiting.Leave(waiting);
      if (!gone.has_value()) return;  // it has landed
      if (!flight->waiting.empty() || flight->work == nullptr) return;
      std::erase(flights_, flight);
    }
    flight->work->Abandon();
  }

  static absl::StatusOr<Bound> MakeOrRefuse(const Make& make) {
    try {
      return make();
    } catch (const std::exception& error) {  // a library ran out of memory; whoever waits is to be told
      return Refuse(Refusal::kInternal, absl::StrCat("what was to be made for the sizes failed: ", error.what()));
    }
  }

  absl::StatusOr<Bound> MakeHere(const FlightPtr& flight, const Make& make) {
    const StopSignal* const signal = StopSignal::Current();
    absl::StatusOr<Bound> bound = MakeOrRefuse(make);
    // A making that was broken off may look as if it had succeeded, or failed.
    const bool is_broken_off = signal != nullptr && signal->is_set();
    if (is_broken_off) bound = signal->status();
    Land(flight, is_broken_off ? Bound() : bound);
    return bound;
  }

  // Null: it was broken off.
  void Land(const FlightPtr& flight, absl::StatusOr<Bound> bound) {
    std::list<Binding> evicted;  // destroyed without the lock
    std::vector<Done> waiting;
    {
      MutexLock lock(&mutex_);
      waiting = flight->waiting.TakeAll();
      if (waiting.empty() && flight->work != nullptr) bound = Bound();  // nobody waits for it any more
      std::erase(flights_, flight);
      if (bound.ok() && *bound != nullptr) evicted = KeepLocked(flight->key, *bound);
    }
    Count(bound.ok() && *bound != nullptr ? BindingStats::kMade : BindingStats::kRefused);
    for (const Done& done : waiting) done(bound);
  }

  // Measures a binding: it may have grown or shrunk since the last use.
  void MeasureLocked(Binding* binding) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (measure_ == nullptr) return;
    const int64_t more = measure_(binding->bound) - binding->bytes;
    if (more == 0) return;
    binding->bytes += more;
    bytes_ += more;
    if (options_.stats != nullptr) options_.stats->AddKept(kind_, 0, more);
  }

  // Returns the bindings that had to go for it.
  std::list<Binding> KeepLocked(const BindingKey& key, const Bound& bound) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto is_it = [&key](const Binding& binding) { return binding.key == key; };
    if (std::any_of(bindings_.begin(), bindings_.end(), is_it)) return {};  // made on two threads
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
};

using BoundProgramCache = BindingCache<std::shared_ptr<const BoundProgram>>;

inline int64_t HeldBytesOf(const std::shared_ptr<const BoundProgram>& bound) { return bound->held_bytes(); }

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_BINDING_CACHE_H_

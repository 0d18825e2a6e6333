#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_COMPILE_POOL_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_COMPILE_POOL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/queued_work.h"
#include "engine/runtime/compile/turn_pool.h"

namespace tensord {

// Threads that compile, apart from those that run programs, in turns by tenant and with a bounded queue. Thread-safe.
// The destructor finishes the queued work and joins.
class CompilePool {
 public:
  using Stats = TurnPool::Stats;
  using Bounds = TurnPool::Bounds;
  // Work that was taken.
  struct Ticket {
    std::string tenant;
    uint64_t id = 0;
  };

  // `niceness` is that of its threads, beyond the niceness of the pool's maker.
  CompilePool(int threads, const Bounds& bounds, int niceness = 0)
      : pool_({.threads = threads, .bounds = bounds, .niceness = niceness}) {}
  CompilePool(int threads, int64_t max_queued, int niceness = 0)
      : CompilePool(threads, Bounds{.max_queued = max_queued}, niceness) {}

  // Sets the bounds of later work.
  void SetBounds(const Bounds& bounds) { pool_.SetBounds(bounds); }
  Bounds bounds() const { return pool_.bounds(); }

  // Fails with QUEUE_FULL, and nothing is kept, where the queue is full, or the tenant's part of it. The name is a
  // copy: the work may be over, and its call with the caller's name gone, before this returns.
  absl::StatusOr<Ticket> Submit(std::string tenant, TurnPool::Work work);
  // Tells whether the work was still waiting: then it is not done, and gone when this returns.
  bool Drop(const Ticket& ticket) { return pool_.Drop(ticket.tenant, ticket.id); }
  // Returns a function that submits to this pool, in turns of the tenant. The pool must outlive it.
  QueuedWork::Submit SubmitFor(const std::string& tenant);
  Stats stats() const { return pool_.stats(); }

 private:
  TurnPool pool_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_COMPILE_POOL_H_

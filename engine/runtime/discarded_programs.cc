#include "engine/runtime/discarded_programs.h"

#include <utility>

#include "engine/base/allocator_tuning.h"

namespace tensord {

DiscardedPrograms::DiscardedPrograms(std::function<void()> give_back)
    : give_back_(give_back ? std::move(give_back) : ReturnFreedMemory), thread_([this] { Loop(); }) {}

DiscardedPrograms::~DiscardedPrograms() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

void DiscardedPrograms::Add(CompiledProgramPtr program, int64_t bytes) {
  {
    MutexLock lock(&mutex_);
    bytes_ += bytes;
    if (waiting_.size() < kMostWaiting) waiting_.push_back(std::move(program));
  }
  changed_.Signal();
}

void DiscardedPrograms::Loop() {
  while (true) {
    std::vector<CompiledProgramPtr> programs;
    int64_t returned = 0;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && bytes_ < kReturnedBytes && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      programs.swap(waiting_);
      if (bytes_ >= kReturnedBytes) returned = std::exchange(bytes_, 0);
    }
    programs.clear();
    if (returned > 0) give_back_();
  }
}

}  // namespace tensord

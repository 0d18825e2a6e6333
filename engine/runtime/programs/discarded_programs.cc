#include "engine/runtime/programs/discarded_programs.h"

#include <utility>

#include "engine/base/allocator_tuning.h"

namespace tensord {

DiscardedPrograms::DiscardedPrograms(std::function<void()> give_back, std::chrono::milliseconds return_every)
    : give_back_(give_back ? std::move(give_back) : ReturnFreedMemory),
      return_every_(return_every),
      thread_([this] { Loop(); }) {}

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

void DiscardedPrograms::LetGo(int64_t bytes) {
  {
    MutexLock lock(&mutex_);
    bytes_ += bytes;
  }
  changed_.Signal();
}

bool DiscardedPrograms::Await(std::vector<CompiledProgramPtr>* programs, bool* returns) {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const bool is_much = bytes_ >= kReturnedBytes;
    *returns = is_much && std::chrono::steady_clock::now() >= next_return_;
    if (*returns || !waiting_.empty()) {
      programs->swap(waiting_);
      if (*returns) bytes_ = 0;
      return true;
    }
    if (is_much) {
      changed_.WaitUntil(&mutex_, next_return_);
    } else {
      changed_.Wait(&mutex_);
    }
  }
  return false;
}

void DiscardedPrograms::Loop() {
  while (true) {
    std::vector<CompiledProgramPtr> programs;
    bool returns = false;
    if (!Await(&programs, &returns)) return;
    programs.clear();
    if (!returns) continue;
    give_back_();
    next_return_ = std::chrono::steady_clock::now() + return_every_;
  }
}

}  // namespace tensord

#ifndef TENSORD_SERVER_PROFILING_CPU_PROFILE_H_
#define TENSORD_SERVER_PROFILING_CPU_PROFILE_H_

#include "absl/time/time.h"
#include "pprof/profile.pb.h"
#include "server/profiling/stack_sampler.h"

namespace tensord::server {

struct ProfileTime {
  absl::Time start;
  absl::Duration duration;
  int per_second = 0;  // of processor time
};

// Returns the stacks with the names of their functions, which this process looks up in its own files: readers of the
// profile need not have them. A function without a name is called after its file, or "[made code]" if it is in none.
perftools::profiles::Profile MakeCpuProfile(const StackSampler::Stacks& stacks, const ProfileTime& time);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_PROFILING_CPU_PROFILE_H_

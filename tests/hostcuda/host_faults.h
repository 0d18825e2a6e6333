#ifndef TENSORD_TESTS_HOSTCUDA_HOST_FAULTS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_FAULTS_H_

#include <string>

namespace tensord::cuda::host {

// Catches faults of the device's work from now on. Faults of other threads' work go where they went before.
void CatchFaults();

// Runs the device's work on this thread. False if it has touched memory that is not there: it is given up then, and
// standard error says which work it was. What it owns is not destroyed, so it should own nothing.
template <typename F>
bool RunGuarded(const std::string& what, const F& work);

// Runs `work(argument)` guarded.
bool RunGuardedCall(const std::string& what, void (*work)(const void*), const void* argument);

template <typename F>
bool RunGuarded(const std::string& what, const F& work) {
  return RunGuardedCall(
      what, [](const void* argument) { (*static_cast<const F*>(argument))(); }, &work);
}

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_FAULTS_H_

#include "tests/hostcuda/host_faults.h"

#include <setjmp.h>
#include <signal.h>

#include <cstdio>
#include <mutex>

namespace tensord::cuda::host {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction g_before[2];

thread_local sigjmp_buf* t_landing = nullptr;
thread_local void* t_address = nullptr;

void OnFault(int signal, siginfo_t* info, void*) {
  if (t_landing != nullptr) {
    t_address = info->si_addr;
    siglongjmp(*t_landing, 1);
  }
  for (int i = 0; i < 2; ++i) {
    if (kSignals[i] == signal) sigaction(signal, &g_before[i], nullptr);  // the fault comes again, to its old handler
  }
}

}  // namespace

void CatchFaults() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // so a jump out of it leaves nothing blocked
    for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &g_before[i]);
  });
}

bool RunGuardedCall(const std::string& what, void (*work)(const void*), const void* argument) {
  sigjmp_buf landing;
  t_landing = &landing;
  const bool is_whole = sigsetjmp(landing, 0) == 0;
  if (is_whole) work(argument);
  t_landing = nullptr;
  if (!is_whole) {
    std::fprintf(stderr, "hostcuda: %s touched memory that is not there, at %p of this process\n", what.c_str(),
                 t_address);
  }
  return is_whole;
}

}  // namespace tensord::cuda::host

#ifndef TENSORD_TESTS_TESTLIB_RUNS_HIDDEN_ADDRESS_H_
#define TENSORD_TESTS_TESTLIB_RUNS_HIDDEN_ADDRESS_H_

#include <cstdint>

namespace tensord {

// Makes an address non-canonical on every 64-bit processor in use; offsets below 2^62 may still be added.
inline constexpr uintptr_t kVeil = uintptr_t{1} << 62;

inline void* Hide(const void* host) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) ^ kVeil); }
inline char* Reveal(const void* device) { return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(device) ^ kVeil); }

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_HIDDEN_ADDRESS_H_

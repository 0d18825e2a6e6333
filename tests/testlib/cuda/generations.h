#ifndef TENSORD_TESTS_TESTLIB_CUDA_GENERATIONS_H_
#define TENSORD_TESTS_TESTLIB_CUDA_GENERATIONS_H_

#include <set>
#include <string>

namespace tensord {

// Fails the test where NVIDIA's compiler warns of a text, spills registers, or gives a thread more of them than
// `most_registers`. Each text is compiled for one generation of devices from sm_75 to sm_120 in turn, or for all of
// them if TENSORD_EVERY_GENERATION is in the environment. Nvrtc::Get() must not be null. Records the number of texts
// and the registers of each generation as properties of the test.
void ExpectFitsGenerations(const std::set<std::string>& texts, int most_registers);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_CUDA_GENERATIONS_H_

#ifndef TENSORD_ENGINE_BASE_THREAD_NICENESS_H_
#define TENSORD_ENGINE_BASE_THREAD_NICENESS_H_

namespace tensord {

// Makes the calling thread give way to others: that much nicer than it was, 19 at most. Threads that it starts are as
// nice. Where the system refuses, all stays as it was. Returns the niceness that the thread has then.
int LowerThisThread(int by);

// Between two pieces of work, which may be as short as one likes: lets the threads run that wait for this processor,
// where this one is nicer than normal. Niceness decides how much each gets, but since Linux 6.6 not when: who wakes and
// had a little more than its share waits for the next tick, 4 ms, however nice the running thread is.
void GiveWay();

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_THREAD_NICENESS_H_

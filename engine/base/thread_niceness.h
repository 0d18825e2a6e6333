#ifndef TENSORD_ENGINE_BASE_THREAD_NICENESS_H_
#define TENSORD_ENGINE_BASE_THREAD_NICENESS_H_

namespace tensord {

// Makes the calling thread give way to others: nicer by that much, 19 at most. Threads that it starts are as nice. If
// the system refuses, all stays as it was. Returns the niceness that the thread has then.
int LowerThisThread(int by);

// Lets other threads that wait for this processor run, if this thread is nicer than normal. Called between two pieces
// of work, however short. Niceness decides each thread's share, but since Linux 6.6 not its turn: a woken thread that
// had a little more than its share waits for the next tick, 4 ms, however nice the running thread is.
void GiveWay();

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_THREAD_NICENESS_H_

#pragma once
// Runs one function per rank, each in a thread of its own over an in-process network. The first exception is rethrown
// after all have ended.
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "annulet/comm/in_process.hpp"

namespace annulet::collectives {

template <class Body>
void run_ranks(int world, Body body, int tag_count = 1 << 15) {
  comm::InProcessNetwork network(world, tag_count);
  std::exception_ptr first;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank, network.connect(rank));
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace annulet::collectives

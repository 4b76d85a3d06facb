#include "annulet/comm/native_collectives.hpp"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "annulet/base/error.hpp"
#include "annulet/comm/environment.hpp"
#include "annulet/comm/mpi.hpp"
#include "handle.hpp"

namespace annulet::comm {
namespace {

constexpr std::chrono::milliseconds kLook{200};

MPI_Datatype native(Number type) {
  switch (type) {
    case Number::float32:
      return MPI_FLOAT;
    case Number::float64:
      return MPI_DOUBLE;
    case Number::int32:
      return MPI_INT32_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op native(NativeReduction reduction) { return reduction == NativeReduction::sum ? MPI_SUM : MPI_MAX; }

std::size_t size_of(Number type) { return type == Number::float64 ? 8 : 4; }

int count_of(std::span<const std::byte> data, Number type) {
  const std::size_t count = data.size() / size_of(type);
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw InputError({fmt::format("{} elements are too many for MPI's own collective", count),
                      "its counts are 32-bit integers", "Lower --max-bytes, or leave mpi out of --algorithm"});
  }
  return static_cast<int>(count);
}

}  // namespace

// Looks now and then whether a call has taken longer than the deadline.
class NativeCollectives::Watch {
 public:
  Watch(Seconds deadline, int rank) : deadline_(deadline), rank_(rank), thread_([this] { watch(); }) {}

  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    signal_.notify_one();
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  template <class Call>
  void run(const char* name, Call call) {
    name_ = name;
    began_ = Clock::now().time_since_epoch().count();
    check(call(), name);
    began_ = kIdle;
  }

 private:
  static constexpr Clock::rep kIdle = 0;

  void watch() {
    std::unique_lock lock(mutex_);
    while (!signal_.wait_for(lock, kLook, [this] { return stopping_; })) {
      const Clock::rep began = began_.load();
      if (began == kIdle || Clock::now() - Instant(Clock::duration(began)) <= deadline_) continue;
      abort_job(
          1,
          describe({fmt::format("rank {} has waited {} inside {}", rank_, annulet::to_text(deadline_), name_.load()),
                    "a rank is stopped, far behind or gone", "Look at that rank; --deadline sets how long to wait"}));
    }
  }

  Seconds deadline_;
  int rank_;
  std::atomic<Clock::rep> began_{kIdle};
  std::atomic<const char*> name_{""};
  std::mutex mutex_;
  std::condition_variable signal_;
  bool stopping_ = false;
  std::thread thread_;  // last: it looks at the above
};

NativeCollectives::NativeCollectives(const Communicator& communicator, Number type, NativeReduction reduction)
    : communicator_(communicator), type_(type), reduction_(reduction) {
  ANNULET_EXPECTS(!communicator.is_null(), "MPI's collectives need a communicator");
  watch_ = std::make_unique<Watch>(CommunicatorAccess::deadline(communicator), communicator.rank());
}

NativeCollectives::~NativeCollectives() = default;

void NativeCollectives::all_reduce(std::span<std::byte> data) {
  const int count = count_of(data, type_);
  watch_->run("MPI_Allreduce", [&] {
    return MPI_Allreduce(MPI_IN_PLACE, data.data(), count, native(type_), native(reduction_),
                         comm::native(communicator_));
  });
}

void NativeCollectives::broadcast(std::span<std::byte> data, int root) {
  const int count = count_of(data, type_);
  watch_->run("MPI_Bcast",
              [&] { return MPI_Bcast(data.data(), count, native(type_), root, comm::native(communicator_)); });
}

void NativeCollectives::reduce(std::span<std::byte> data, int root) {
  const int count = count_of(data, type_);
  const bool is_root = communicator_.rank() == root;
  watch_->run("MPI_Reduce", [&] {
    return MPI_Reduce(is_root ? MPI_IN_PLACE : data.data(), data.data(), count, native(type_), native(reduction_), root,
                      comm::native(communicator_));
  });
}

void NativeCollectives::reduce_scatter(std::span<const std::byte> data, std::span<std::byte> chunk,
                                       std::span<const int> counts) {
  count_of(data, type_);
  ANNULET_EXPECTS(
      chunk.size() == static_cast<std::size_t>(counts[static_cast<std::size_t>(communicator_.rank())]) * size_of(type_),
      "the result has the size of this rank's chunk");
  watch_->run("MPI_Reduce_scatter", [&] {
    return MPI_Reduce_scatter(data.data(), chunk.data(), counts.data(), native(type_), native(reduction_),
                              comm::native(communicator_));
  });
}

void NativeCollectives::all_gather(std::span<std::byte> data, std::span<const int> counts) {
  count_of(data, type_);
  std::vector<int> offsets;
  int total = 0;
  for (const int count : counts) offsets.push_back(total), total += count;
  watch_->run("MPI_Allgatherv", [&] {
    return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data.data(), counts.data(), offsets.data(), native(type_),
                          comm::native(communicator_));
  });
}

}  // namespace annulet::comm

#pragma once
// A trace for Perfetto and chrome://tracing: one process per rank with threads "compute" (data, forward, backward,
// waits, optimiser of each step) and "communication" (a bucket from its launch to its end; a second one where they
// overlap). During the run each rank writes its own file (rank 0 FILE, rank N FILE.rankN); at a normal end FILE holds
// them all. From begin() on the file is valid JSON at all times: what is new is written over the closing brackets, with
// new ones, in one pwrite about every second. It holds the first steps, up to 16 MiB a rank (256 MiB over all ranks);
// "otherData" says how many.
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "annulet/train/tracer.hpp"

namespace annulet::report {

// A growing JSON array of events that is closed at every moment from begin() on.
class TraceFile {
 public:
  // Makes the file, or leaves it as it is. Throws InputError if it cannot be written.
  explicit TraceFile(std::filesystem::path file);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Replaces what the file held by no events. Throws InputError if that cannot be.
  void begin();

  // After begin(): makes the file hold `events` (comma-separated) after those that it has; `note` replaces the last
  // one. Throws RunError with the system's reason, ContractError before begin().
  void append(std::string_view events, std::string_view note);

  std::string events() const;  // all of them; throws as append()
  Bytes size() const { return Bytes(end_); }
  const std::filesystem::path& path() const { return file_; }

 private:
  void write(std::string_view text, std::int64_t at) const;

  std::filesystem::path file_;
  int descriptor_;
  std::int64_t end_ = 0;  // where events end and the closing begins; 0 before begin()
  bool empty_ = true;
  std::string block_;
};

class Trace final : public train::Tracer {
 public:
  // Makes the file of rank `rank`; FILE is `file`.
  Trace(const std::filesystem::path& file, int rank);

  void begin(int rank, int world, const train::TraceClock& clock) override;
  void step(const train::TracedStep& step) override;
  std::string events() override;
  void keep(const std::vector<std::string>& of_ranks) override;
  void discard() override;

 private:
  struct Lane {
    Instant free{};
  };
  void add(int thread, std::string_view name, Instant begin, Instant end, long step);
  void add_metadata(std::string_view kind, int thread, const std::string& name);
  void add_buckets(const train::TracedStep& step);
  std::size_t lane(Instant begin, Instant end);
  void flush();
  std::string note() const;

  TraceFile file_;
  train::TraceClock clock_;
  int rank_;
  Bytes limit_{0};
  long steps_ = 0, left_out_ = 0;
  bool failed_ = false;  // the file cannot be written any more
  std::vector<Lane> lanes_;
  fmt::memory_buffer buffer_;
  Instant flushed_;
};

}  // namespace annulet::report

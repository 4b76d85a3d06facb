#include "annulet/report/trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "annulet/base/error.hpp"

namespace annulet::report {
namespace {

constexpr std::string_view kOpening = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
constexpr Bytes kMostOfARank{16 << 20}, kMostOfAll{256 << 20};
constexpr Seconds kBetweenFlushes{1};

std::string closing(std::string_view note) { return fmt::format("\n],\"otherData\":{{\"steps\":\"{}\"}}}}\n", note); }

}  // namespace

TraceFile::TraceFile(std::filesystem::path file)
    : file_(std::move(file)), descriptor_(open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw InputError({fmt::format("the trace {} cannot be written", file_.string()), std::strerror(errno),
                      "Choose another file with --trace"});
  }
}

void TraceFile::begin() {
  if (ftruncate(descriptor_, 0) != 0 && errno != EINVAL) {  // EINVAL: a device, which keeps nothing
    throw InputError({fmt::format("the trace {} cannot be replaced", file_.string()), std::strerror(errno),
                      "Choose another file with --trace"});
  }
  write(std::string(kOpening) + closing(""), 0);
  end_ = static_cast<std::int64_t>(kOpening.size()), empty_ = true;
}

TraceFile::~TraceFile() { close(descriptor_); }

void TraceFile::write(std::string_view text, std::int64_t at) const {
  while (!text.empty()) {
    const ssize_t written = pwrite(descriptor_, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw RunError({fmt::format("the trace {} cannot be written", file_.string()), std::strerror(errno),
                      "Make room, or leave out --trace"});
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
}

// Notes only grow, and so does the file: nothing of the old end is left behind.
void TraceFile::append(std::string_view events, std::string_view note) {
  ANNULET_EXPECTS(end_ > 0, "a trace is begun before events are added");
  block_.assign(empty_ || events.empty() ? "" : ",\n");
  block_ += events;
  const auto grown = static_cast<std::int64_t>(block_.size());
  block_ += closing(note);
  write(block_, end_);
  end_ += grown;
  empty_ = empty_ && events.empty();
}

std::string TraceFile::events() const {
  ANNULET_EXPECTS(end_ > 0, "a trace is begun before events are read");
  std::string text(static_cast<std::size_t>(end_) - kOpening.size(), ' ');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(kOpening.size() + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw RunError({fmt::format("the trace {} cannot be read again", file_.string()), std::strerror(errno)});
    }
    done += static_cast<std::size_t>(got);
  }
  return text;
}

Trace::Trace(const std::filesystem::path& file, int rank)
    : file_(rank == 0 ? file : std::filesystem::path(file.string() + fmt::format(".rank{}", rank))), rank_(rank) {}

void Trace::begin(int rank, int world, const train::TraceClock& clock) {
  rank_ = rank, clock_ = clock;
  limit_ = std::min(kMostOfARank, Bytes(kMostOfAll.value() / world));
  flushed_ = Clock::now();
  file_.begin();
  add_metadata("process_name", 0, fmt::format("rank {}", rank));
  add_metadata("thread_name", 0, "compute");
  flush();
}

void Trace::add_metadata(std::string_view kind, int thread, const std::string& name) {
  fmt::format_to(std::back_inserter(buffer_), R"({}{{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                 buffer_.size() == 0 ? "" : ",\n", kind, rank_, thread, name);
}

void Trace::add(int thread, std::string_view name, Instant begin, Instant end, long step) {
  const double at = clock_.at(begin).count() * 1e6, length = Seconds(end - begin).count() * 1e6;
  fmt::format_to(std::back_inserter(buffer_),
                 R"({}{{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"step":{}}}}})",
                 buffer_.size() == 0 ? "" : ",\n", name, rank_, thread, at, std::max(0.0, length), step);
}

void Trace::step(const train::TracedStep& step) {
  if (failed_ || left_out_ > 0 || file_.size() + Bytes(static_cast<std::int64_t>(buffer_.size())) > limit_) {
    ++left_out_;
    return;
  }
  const train::StepSeconds& s = step.record.seconds;
  Instant at = step.began;
  const auto lap = [&](std::string_view name, Seconds length) {
    const Instant end = at + std::chrono::duration_cast<Clock::duration>(length);
    add(0, name, at, end, step.record.step);
    at = end;
  };
  lap("data", s.data);
  lap("forward", s.forward);
  lap("backward", Seconds(step.backward_ended - at));
  lap("waiting for buckets", s.exposed - s.control);
  lap("norm", s.norm);
  lap("control record", s.control);
  lap("optimiser", Seconds(step.began - at) + s.total);
  add_buckets(step);
  ++steps_;
  if (Clock::now() - flushed_ > kBetweenFlushes) flush();
}

void Trace::add_buckets(const train::TracedStep& step) {
  for (std::size_t b = 0; b < step.buckets.size(); ++b) {
    const auto& times = step.buckets[b];
    const int thread = static_cast<int>(lane(times.started, times.finished)) + 1;
    add(thread, fmt::format("bucket {}", b + 1), times.started, times.finished, step.record.step);
  }
}

// Slices of one thread must not overlap.
std::size_t Trace::lane(Instant begin, Instant end) {
  std::size_t at = 0;
  while (at < lanes_.size() && lanes_[at].free > begin) ++at;
  if (at == lanes_.size()) {
    lanes_.emplace_back();
    const std::string number = at == 0 ? "" : fmt::format(" {}", at + 1);
    add_metadata("thread_name", static_cast<int>(at) + 1, "communication" + number);
  }
  lanes_[at].free = end;
  return at;
}

std::string Trace::note() const {
  if (left_out_ == 0) return fmt::format("{} from the first", steps_);
  return fmt::format("{} from the first, and no more: {} were reached", steps_, to_text(limit_));
}

// A full disk ends the trace, not the run.
void Trace::flush() {
  try {
    if (!failed_) file_.append({buffer_.data(), buffer_.size()}, note());
  } catch (const RunError& error) {
    failed_ = true;
    fmt::print(stderr, "warning: {} The trace ends here, the run goes on.\n", error.what());
  }
  buffer_.clear();
  flushed_ = Clock::now();
}

std::string Trace::events() {
  flush();
  return file_.events();
}

void Trace::keep(const std::vector<std::string>& of_ranks) {
  for (std::size_t r = 1; r < of_ranks.size(); ++r) file_.append(of_ranks[r], note());
}

void Trace::discard() { std::filesystem::remove(file_.path()); }

}  // namespace annulet::report

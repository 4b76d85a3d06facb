#include "annulet/comm/communicator.hpp"

#include <fmt/format.h>

#include <sched.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "annulet/base/error.hpp"
#include "annulet/comm/mpi.hpp"
#include "handle.hpp"

namespace annulet::comm {
namespace {

int count_of(std::size_t n) {
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw RunError({fmt::format("a start-up message of {} elements is too long", n), "MPI counts are 32-bit integers"});
  }
  return static_cast<int>(n);
}

// Starts a collective by start(request) and waits for it. The non-blocking forms, since a blocking one can neither be
// given up nor yields its core.
template <class Start>
void run(const Communicator& communicator, std::string_view call, Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(start(&request), call);
  const Instant begin = Clock::now();
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
    if (done != 0) return;
    sched_yield();
    const Seconds waited = Clock::now() - begin;
    if (waited <= CommunicatorAccess::deadline(communicator)) continue;
    throw RunError(
        {fmt::format("rank {} has waited {} for all ranks to come to {}", communicator.rank(), to_text(waited), call),
         "a rank is stopped, far behind or gone", "Look at that rank; --deadline sets how long to wait"});
  }
}

template <class T>
T reduced(const Communicator& communicator, T value, MPI_Datatype type, MPI_Op op) {
  if (communicator.size() == 1) return value;
  T result{};
  run(communicator, "MPI_Iallreduce", [&](MPI_Request* request) {
    return MPI_Iallreduce(&value, &result, 1, type, op, native(communicator), request);
  });
  return result;
}

template <class T>
std::vector<T> gathered_by_all(const Communicator& communicator, std::span<const T> values, MPI_Datatype type) {
  std::vector<T> all(values.begin(), values.end());
  if (communicator.size() == 1) return all;
  all.resize(values.size() * static_cast<std::size_t>(communicator.size()));
  const int count = count_of(values.size());
  run(communicator, "MPI_Iallgather", [&](MPI_Request* request) {
    return MPI_Iallgather(values.data(), count, type, all.data(), count, type, native(communicator), request);
  });
  return all;
}

std::vector<int> offsets_of(const std::vector<int>& counts) {
  std::vector<int> offsets;
  std::size_t total = 0;
  for (const int count : counts) {
    offsets.push_back(count_of(total));
    total += static_cast<std::size_t>(count);
  }
  count_of(total);  // the sum must fit as well
  return offsets;
}

}  // namespace

Communicator::Handle::Handle(MPI_Comm communicator) : comm(communicator) {
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
}

Communicator::Handle::~Handle() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm);
}

Communicator CommunicatorAccess::wrap(MPI_Comm communicator) {
  Communicator result;
  result.handle_ = std::make_shared<Communicator::Handle>(communicator);
  return result;
}

MPI_Comm CommunicatorAccess::native(const Communicator& communicator) {
  return communicator.handle_ ? communicator.handle_->comm : MPI_COMM_NULL;
}

Seconds CommunicatorAccess::deadline(const Communicator& communicator) { return communicator.handle_->deadline; }

Communicator duplicate(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) return {};
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(communicator, &copy), "MPI_Comm_dup");
  return CommunicatorAccess::wrap(copy);
}

MPI_Comm native(const Communicator& communicator) { return CommunicatorAccess::native(communicator); }

void check(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunError({fmt::format("{} failed: {}", call, std::string_view(text, static_cast<std::size_t>(length)))});
}

int Communicator::rank() const { return handle_ ? handle_->rank : 0; }

int Communicator::size() const { return handle_ ? handle_->size : 1; }

void Communicator::set_deadline(Seconds deadline) const {
  if (handle_) handle_->deadline = deadline;
}

void Communicator::barrier() const {
  if (size() == 1) return;
  run(*this, "MPI_Ibarrier", [&](MPI_Request* request) { return MPI_Ibarrier(native(*this), request); });
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) const {
  if (size() == 1) return;
  run(*this, "MPI_Ibcast", [&](MPI_Request* request) {
    return MPI_Ibcast(bytes.data(), count_of(bytes.size()), MPI_BYTE, root, native(*this), request);
  });
}

std::string Communicator::broadcast(const std::string& text, int root) const {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  std::string result = text;
  result.resize(static_cast<std::size_t>(length));
  broadcast(std::as_writable_bytes(std::span(result)), root);
  return result;
}

double Communicator::sum(double value) const { return reduced(*this, value, MPI_DOUBLE, MPI_SUM); }

double Communicator::maximum(double value) const { return reduced(*this, value, MPI_DOUBLE, MPI_MAX); }

std::int64_t Communicator::minimum(std::int64_t value) const { return reduced(*this, value, MPI_INT64_T, MPI_MIN); }

std::vector<double> Communicator::all_gather(std::span<const double> values) const {
  return gathered_by_all(*this, values, MPI_DOUBLE);
}

std::vector<std::int64_t> Communicator::all_gather(std::span<const std::int64_t> values) const {
  return gathered_by_all(*this, values, MPI_INT64_T);
}

std::vector<std::string> Communicator::all_gather(const std::string& text) const {
  const std::int64_t length = static_cast<std::int64_t>(text.size());
  const auto lengths = all_gather(std::span(&length, 1));
  if (size() == 1) return {text};
  std::vector<int> counts;
  for (const std::int64_t n : lengths) counts.push_back(count_of(static_cast<std::size_t>(n)));
  const auto offsets = offsets_of(counts);
  std::string all(static_cast<std::size_t>(offsets.back() + counts.back()), '\0');
  const int mine = counts[static_cast<std::size_t>(rank())];
  run(*this, "MPI_Iallgatherv", [&](MPI_Request* request) {
    return MPI_Iallgatherv(text.data(), mine, MPI_CHAR, all.data(), counts.data(), offsets.data(), MPI_CHAR,
                           native(*this), request);
  });
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    texts.push_back(all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(counts[r])));
  }
  return texts;
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> bytes, int root) const {
  if (size() == 1) return {{bytes.begin(), bytes.end()}};
  const int mine = count_of(bytes.size());
  const bool here = rank() == root;
  std::vector<int> counts(here ? static_cast<std::size_t>(size()) : 0);
  run(*this, "MPI_Igather", [&](MPI_Request* request) {
    return MPI_Igather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, root, native(*this), request);
  });
  const auto offsets = offsets_of(counts);
  std::vector<std::byte> all(here ? static_cast<std::size_t>(offsets.back() + counts.back()) : 0);
  run(*this, "MPI_Igatherv", [&](MPI_Request* request) {
    return MPI_Igatherv(bytes.data(), mine, MPI_BYTE, all.data(), counts.data(), offsets.data(), MPI_BYTE, root,
                        native(*this), request);
  });
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto first = all.begin() + offsets[r];
    parts.emplace_back(first, first + counts[r]);
  }
  return parts;
}

std::vector<int> Communicator::node_ranks() const {
  if (size() == 1) return {0};
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(native(*this), MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  const Communicator neighbours = CommunicatorAccess::wrap(node);
  const std::int64_t me = rank();
  std::vector<int> ranks;
  for (const std::int64_t r : neighbours.all_gather(std::span(&me, 1))) ranks.push_back(static_cast<int>(r));
  return ranks;
}

std::vector<int> Communicator::nodes() const {
  const std::int64_t leader = node_ranks().front();
  const auto leaders = all_gather(std::span(&leader, 1));
  std::vector<int> nodes;
  int count = 0;
  for (std::size_t r = 0; r < leaders.size(); ++r) {
    const auto of_node = static_cast<std::size_t>(leaders[r]);
    nodes.push_back(of_node == r ? count++ : nodes[of_node]);
  }
  return nodes;
}

Communicator Communicator::by_node() const {
  const std::vector<int> node = nodes();
  if (std::ranges::is_sorted(node)) return *this;
  MPI_Comm ordered = MPI_COMM_NULL;
  check(MPI_Comm_split(native(*this), 0, node[static_cast<std::size_t>(rank())], &ordered), "MPI_Comm_split");
  Communicator result = CommunicatorAccess::wrap(ordered);
  result.set_deadline(CommunicatorAccess::deadline(*this));
  return result;
}

}  // namespace annulet::comm

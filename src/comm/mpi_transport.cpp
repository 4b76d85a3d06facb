#include "annulet/comm/mpi_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

#include "annulet/base/error.hpp"
#include "annulet/comm/eager_limit.hpp"
#include "annulet/comm/mpi.hpp"

namespace annulet::comm {
namespace {

// Messages, more than windows of the engine need, and pieces; the arrays grow beyond it only once.
constexpr std::size_t kReserve = 256, kReservePieces = 1024;

class MpiTransport final : public Transport {
 public:
  MpiTransport(const Communicator& communicator, const MpiTransportOptions& options)
      : communicator_(communicator), comm_(native(communicator)), options_(options) {
    ANNULET_EXPECTS(!communicator.is_null(), "a transport needs a communicator");
    ANNULET_EXPECTS(
        options.pieces.most > 0 &&
            std::ranges::all_of(options.pieces_by_peer, [](const Pieces& pieces) { return pieces.most > 0; }),
        "a piece has a byte at least");
    int found = 0;
    int* upper_bound = nullptr;
    check(MPI_Comm_get_attr(comm_, MPI_TAG_UB, static_cast<void*>(&upper_bound), &found), "MPI_Comm_get_attr");
    tags_ = std::min(found != 0 ? *upper_bound : 32767, options.most_tags);
    requests_.reserve(kReservePieces), pieces_.reserve(kReservePieces);
    indices_.reserve(kReservePieces), statuses_.reserve(kReservePieces);
    messages_.reserve(kReserve), free_.reserve(kReserve), finished_.reserve(kReserve);
  }

  // After an error messages may be under way: they are given up, so that nothing arrives in memory that is gone.
  ~MpiTransport() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    for (MPI_Request& request : requests_) {
      if (finalized != 0 || request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return communicator_.rank(); }
  int world() const override { return communicator_.size(); }
  int tag_count() const override { return tags_; }
  const Traffic& traffic() const override { return traffic_; }

  void post_send(const Envelope& envelope, std::span<const std::byte> bytes) override {
    const std::size_t message = open(envelope);
    split(envelope.peer, bytes.size(), [&](std::size_t first, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Isend(bytes.data() + first, count, MPI_BYTE, envelope.peer, envelope.tag, comm_, &request),
            "MPI_Isend");
      add(request, {message, -1});
    });
    traffic_.sent[static_cast<std::size_t>(envelope.purpose)] += Bytes(static_cast<std::int64_t>(bytes.size()));
  }

  void post_receive(const Envelope& envelope, std::span<std::byte> bytes) override {
    const std::size_t message = open(envelope);
    split(envelope.peer, bytes.size(), [&](std::size_t first, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Irecv(bytes.data() + first, count, MPI_BYTE, envelope.peer, envelope.tag, comm_, &request),
            "MPI_Irecv");
      add(request, {message, count});
    });
  }

  std::size_t poll(std::span<std::uint64_t> finished) override {
    if (finished_.empty()) test();
    return take(finished);
  }

  std::size_t glance(std::span<std::uint64_t> finished) override {
    if (finished_.empty()) test_some();
    return take(finished);
  }

 private:
  std::size_t take(std::span<std::uint64_t> finished) {
    const std::size_t count = std::min(finished.size(), finished_.size());
    std::copy_n(finished_.begin(), count, finished.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  struct Message {
    std::uint64_t token;
    int peer;
    int pieces;
  };
  struct Piece {
    std::size_t message;
    int expected;  // bytes of a receive; -1 for a send
  };

  template <class Post>
  void split(int peer, std::size_t size, Post post) const {
    const auto& by_peer = options_.pieces_by_peer;
    const Pieces& pieces = by_peer.empty() ? options_.pieces : by_peer[static_cast<std::size_t>(peer)];
    const bool eagerly = pieces.eager > 0 && static_cast<std::int64_t>(size) <= pieces.reach;
    const auto most = static_cast<std::size_t>(eagerly ? std::min(pieces.eager, pieces.most) : pieces.most);
    std::size_t first = 0;
    do {
      const std::size_t count = std::min(most, size - first);
      post(first, static_cast<int>(count));
      first += count;
    } while (first < size);
  }

  std::size_t open(const Envelope& envelope) {
    ++traffic_.posted;
    const Message message{envelope.token, envelope.peer, 0};
    if (free_.empty()) {
      messages_.push_back(message);
      return messages_.size() - 1;
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    messages_[index] = message;
    return index;
  }

  void add(MPI_Request request, Piece piece) {
    requests_.push_back(request);
    pieces_.push_back(piece);
    ++messages_[piece.message].pieces;
  }

  // Open MPI's MPI_Testsome reports what had finished before the call, and lets messages move only if that was nothing;
  // what then finishes is reported by the next call. So a look ends with a call that moves and one that reports: a rank
  // that looks only now and then would otherwise hear of an arrival one look late.
  void test() {
    while (test_some()) {
    }
    test_some();
  }

  // True if anything had finished.
  bool test_some() {
    if (requests_.empty()) return false;
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(), statuses_.data());
    if (code != MPI_SUCCESS) report_failure(code, count);
    if (count <= 0) return false;
    for (int i = 0; i < count; ++i) {
      check_size(statuses_[static_cast<std::size_t>(i)],
                 pieces_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])]);
    }
    std::sort(indices_.begin(), indices_.begin() + count, std::greater<>());
    for (int i = 0; i < count; ++i) remove(static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]));
    return true;
  }

  void check_size(const MPI_Status& status, Piece piece) const {
    if (piece.expected < 0) return;
    int count = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    if (count == piece.expected) return;
    throw RunError({fmt::format("rank {} received {} bytes from rank {}, expected {}", rank(), count,
                                messages_[piece.message].peer, piece.expected),
                    "the ranks do not run the same plan"});
  }

  void remove(std::size_t index) {
    const std::size_t message = pieces_[index].message;
    requests_[index] = requests_.back(), pieces_[index] = pieces_.back();
    requests_.pop_back(), pieces_.pop_back();
    if (--messages_[message].pieces > 0) return;
    finished_.push_back(messages_[message].token);
    free_.push_back(message);
    ++traffic_.completed;
  }

  [[noreturn]] void report_failure(int code, int count) const {
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < count; ++i) {
      const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
      if (status.MPI_ERROR == MPI_SUCCESS || status.MPI_ERROR == MPI_ERR_PENDING) continue;
      const int peer = messages_[pieces_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])].message].peer;
      check(status.MPI_ERROR, fmt::format("a message between ranks {} and {}", rank(), peer));
    }
    check(code, "MPI_Testsome");
    throw RunError({"MPI_Testsome failed without saying why"});
  }

  Communicator communicator_;
  MPI_Comm comm_;
  MpiTransportOptions options_;
  int tags_ = 0;
  Traffic traffic_;
  std::vector<MPI_Request> requests_;  // dense; pieces_ runs beside it
  std::vector<Piece> pieces_;
  std::vector<Message> messages_;
  std::vector<std::size_t> free_;  // unused places in messages_
  std::vector<std::uint64_t> finished_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

bool is_open_mpi() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return std::string_view(text.data(), static_cast<std::size_t>(length)).starts_with("Open MPI");
}

Pieces eager_pieces(const EagerLimit& limit) { return {.eager = limit.bytes.value(), .reach = limit.reach().value()}; }

}  // namespace

MpiTransportOptions options_for_links(const Communicator& communicator) {
  MpiTransportOptions options;
  if (communicator.minimum(is_open_mpi() ? 1 : 0) == 0) return options;
  const std::vector<int> nodes = communicator.nodes();
  // On one node shared memory is used unless somebody chose, and asking MPI for limits is slow.
  const bool chosen =
      std::getenv("OMPI_MCA_btl") != nullptr || std::getenv("OMPI_MCA_btl_vader_eager_limit") != nullptr;
  if (communicator.minimum(chosen || std::ranges::max(nodes) > 0 ? 0 : 1) == 1) {
    options.pieces = eager_pieces(assumed_shared_memory_limit());
    return options;
  }
  const auto pieces_for = [&](EagerLimit limit) {
    limit.bytes = Bytes(communicator.minimum(limit.bytes.value()));
    const bool tcp = communicator.minimum(limit.is_tcp() ? 0 : 1) == 0;
    return tcp ? Pieces{.most = limit.bytes.value()} : eager_pieces(limit);
  };
  const EagerLimits& limits = find_eager_limits();
  const Pieces inside = pieces_for(limits.inside), between = pieces_for(limits.between);
  const int here = nodes[static_cast<std::size_t>(communicator.rank())];
  for (const int node : nodes) options.pieces_by_peer.push_back(node == here ? inside : between);
  return options;
}

std::unique_ptr<Transport> make_mpi_transport(const Communicator& communicator, const MpiTransportOptions& options) {
  return std::make_unique<MpiTransport>(communicator, options);
}

}  // namespace annulet::comm

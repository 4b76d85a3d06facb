#pragma once
// How the engine moves bytes: messages are posted, and finish some time later. Never blocks.
//   MpiTransport       over a communicator (comm/mpi_transport.hpp)
//   InProcessTransport between the ranks of one process (comm/in_process.hpp): plans for 17 ranks in a unit test
//   EmulatedTransport  on top of either: a slower link than the one there is (comm/emulated.hpp)
// Messages between two ranks with one tag arrive in the order in which they were posted. Buffers must stay alive until
// their token is returned by poll(). One thread at a time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "annulet/base/units.hpp"

namespace annulet::comm {

// What a message is for; bytes are counted by it.
enum class Purpose : std::uint8_t { gradients, weights, control, other };
constexpr std::size_t kPurposes = 4;

// Who and which: the other rank, a tag below tag_count(), the purpose, and the poster's name for the message.
struct Envelope {
  int peer = 0;
  int tag = 0;
  Purpose purpose = Purpose::other;
  std::uint64_t token = 0;
};

// Counted where messages are posted. Only what is sent is on the wire of this rank.
struct Traffic {
  std::array<Bytes, kPurposes> sent{};
  std::int64_t posted = 0;     // sends and receives
  std::int64_t completed = 0;  // the same once finished

  Bytes operator[](Purpose purpose) const { return sent[static_cast<std::size_t>(purpose)]; }
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual int tag_count() const = 0;

  virtual void post_send(const Envelope& envelope, std::span<const std::byte> bytes) = 0;
  virtual void post_receive(const Envelope& envelope, std::span<std::byte> bytes) = 0;

  // Lets messages move and writes the tokens of those that have finished; returns how many (0 if none).
  // Throws RunError if a message was shorter or longer than its receive; but where one ends with a piece of the other,
  // the receive waits on, or the next one meets what is left.
  virtual std::size_t poll(std::span<std::uint64_t> finished) = 0;

  // The same for who looks again at once: quicker, and what has only just arrived may be told by the next look.
  virtual std::size_t glance(std::span<std::uint64_t> finished) { return poll(finished); }

  // Whether everything sent with this tag is at its peer, as far as it takes poll() here to bring it there: on an
  // emulated link a send finishes when it has left the port, and is still under way.
  virtual bool has_arrived(int /*tag*/) const { return true; }

  // When something is known to happen next (an emulated departure or arrival); Instant::max() if that is up to the
  // peers.
  virtual Instant next_event() const { return Instant::max(); }

  virtual const Traffic& traffic() const = 0;
};

}  // namespace annulet::comm

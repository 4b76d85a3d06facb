#pragma once
// One rank's run of a plan: a small object that is stepped and never blocks. A step is posted (send, receive) or done
// (combine, copy) once all that it waits for has finished; sends are posted in plan order, receives too, a few at a
// time.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/collectives/element.hpp"
#include "annulet/comm/transport.hpp"
#include "annulet/schedule/plan.hpp"

namespace annulet::collectives {

// What is run: `data` holds plan->elements elements and must outlive the operation, and so must `input` where the plan
// is out of place. The two are apart, or the same.
struct OperationSpec {
  std::string name;  // "gradient bucket 2", for errors and reports
  comm::Purpose purpose = comm::Purpose::other;
  ElementType element{};
  std::shared_ptr<const schedule::Plan> plan;
  std::span<std::byte> data;
  std::function<void(std::span<std::byte> data)> finish{};  // what is done to the data after the last step, if anything
  std::span<const std::byte> input{};                       // as long as `data`, and only read; in place: none
  std::size_t common_bytes = 0;  // the same on every rank, where the data are not; 0: they are
};

// When this rank's part began and ended.
struct Timeline {
  Instant launched;  // handed to the engine; with the blocking driver: when somebody waits and it may begin
  Instant finished;  // last step done
};

class Operation {
 public:
  explicit Operation(OperationSpec spec);

  const OperationSpec& spec() const { return spec_; }
  std::size_t scratch_bytes() const;

  // Begins a run. `token_base` is added to the step numbers that the transport is given; `scratch` has scratch_bytes().
  void start(int tag, std::uint64_t token_base, std::span<std::byte> scratch);

  // The transport has finished this step.
  void finish_step(schedule::StepId step);

  // Does and posts what can be done and posted now. True if anything was.
  bool advance(comm::Transport& transport);

  bool done() const { return remaining_ == 0; }
  int tag() const { return tag_; }  // of this run's messages

  // "7 of 24 steps done, waiting to receive 65536 elements from rank 1 and for rank 2 to take 65536 elements".
  std::string state() const;

 private:
  // Where elements travel as another type: the memory of the messages in flight, kept for the next ones.
  class Stage {
   public:
    void expect(std::size_t largest) { largest_ = std::max(largest_, largest); }  // message, in bytes
    std::span<std::byte> take(schedule::StepId step, std::size_t bytes);
    std::span<std::byte> of(schedule::StepId step) { return taken_[static_cast<std::size_t>(step)]; }
    void give_back(schedule::StepId step);

   private:
    std::vector<AlignedVector<std::byte>> taken_;  // [step]
    std::vector<AlignedVector<std::byte>> free_;
    std::size_t largest_ = 0;
  };

  // Posting in plan order of one kind of step.
  struct Queue {
    std::vector<schedule::StepId> order;
    std::size_t next = 0;
    int in_flight = 0;
  };

  bool post_next(Queue& queue, comm::Transport& transport);
  void post(schedule::StepId step, comm::Transport& transport);
  bool compute_next();
  void release(schedule::StepId step);
  template <class Byte>
  std::span<Byte> part(std::span<Byte> memory, schedule::Interval where) const;
  std::span<std::byte> bytes(schedule::Region region) const;         // of data or scratch
  std::span<const std::byte> source(schedule::Region region) const;  // of any place
  std::span<std::byte> message(schedule::StepId step);               // what travels, encoded if need be
  void take_in(schedule::StepId step);                               // what has travelled
  std::string first_unfinished(const Queue& queue, const char* text) const;

  OperationSpec spec_;
  std::vector<std::int32_t> prerequisites_;    // [step]: how many steps it waits for
  std::vector<std::int32_t> first_dependent_;  // [step + 1]: slice of dependents_
  std::vector<schedule::StepId> dependents_;
  Queue sends_, receives_;
  Stage stage_;

  std::span<std::byte> scratch_;
  std::vector<std::int32_t> waiting_;  // [step]: unmet prerequisites of this run
  std::vector<bool> finished_;
  std::vector<schedule::StepId> computable_;  // combines and copies whose inputs are there
  std::size_t next_computable_ = 0;
  std::size_t remaining_ = 0;
  std::uint64_t token_base_ = 0;
  int tag_ = 0;
};

}  // namespace annulet::collectives

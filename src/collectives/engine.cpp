#include "annulet/collectives/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "annulet/base/aligned.hpp"
#include "annulet/base/error.hpp"
#include "backoff.hpp"

namespace annulet::collectives {
namespace {

// A token is the operation's index above, the step's number below.
constexpr int kStepBits = 32;

std::size_t index(OperationId id) { return static_cast<std::size_t>(id); }

}  // namespace

// The stepping itself (upper half, one thread at a time) and the hand-over to whoever steps (lower half).
class Engine::Core {
 public:
  Core(std::unique_ptr<comm::Transport> transport, const EngineOptions& options)
      : transport_(std::move(transport)), options_(options), scratch_(static_cast<std::size_t>(options.active)) {
    ANNULET_EXPECTS(transport_ != nullptr && options.active > 0,
                    "an engine needs a transport and room for one operation");
    ANNULET_EXPECTS(transport_->tag_count() > options.active, "operations in progress have tags of their own");
    active_.reserve(scratch_.size());
    if (options.driver == Driver::thread) thread_ = std::thread([this] { progress(); });
  }

  ~Core() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    launched_signal_.notify_all();
    thread_.join();
  }

  OperationId declare(OperationSpec spec) {
    const std::lock_guard lock(mutex_);
    ANNULET_EXPECTS(launches_ == 0, "operations are declared before the first launch");
    slots_.push_back(std::make_unique<Slot>(std::move(spec)));
    for (auto& scratch : scratch_) {
      const std::size_t needed = slots_.back()->operation.scratch_bytes();
      if (needed > scratch.memory.size()) scratch.memory = AlignedVector<std::byte>(needed, account_);
    }
    launched_.reserve(slots_.size()), taken_.reserve(slots_.size());
    return OperationId{slots_.size() - 1};
  }

  void launch(OperationId id) {
    Slot& slot = slot_of(id);
    ANNULET_EXPECTS(slot.done.load(), "an operation is launched when its last run has finished");
    slot.done.store(false);
    slot.timeline.launched = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      launched_.push_back(index(id));
      ++launches_, ++under_way_;
    }
    if (options_.driver == Driver::thread) launched_signal_.notify_one();
  }

  // Whoever waits has nothing better to do than to step, with every driver.
  void wait(OperationId id) {
    Slot& slot = slot_of(id);
    Backoff backoff;
    last_move_ = Clock::now();
    while (!slot.done.load()) {
      if (const auto next_event = step_in_turn()) {
        backoff.pause(*next_event);
      } else {
        backoff.reset();
      }
    }
    rethrow_failure();
  }

  void poll() {
    if (options_.driver == Driver::polling) step(Look::thorough);
    if (options_.driver == Driver::thread) help();
  }

  struct Slot {
    explicit Slot(OperationSpec spec) : operation(std::move(spec)) {}
    Operation operation;
    Timeline timeline;
    std::atomic<bool> done{true};
    std::size_t scratch = 0;  // which scratch it runs in
  };

  Slot& slot_of(OperationId id) {
    ANNULET_EXPECTS(index(id) < slots_.size(), "an operation has been declared");
    return *slots_[index(id)];
  }

  std::size_t declared() const { return slots_.size(); }
  const EngineOptions& options() const { return options_; }
  Bytes scratch() const { return account_.held(); }
  const comm::Transport& transport() const { return *transport_; }

 private:
  struct Scratch {
    AlignedVector<std::byte> memory;
    bool used = false;
  };

  // Of whoever steps: at once again, or seldom, and then at all that has come.
  enum class Look { again, thorough };

  // Lets everything move that can. True if anything did.
  bool step(Look look) {
    bool moved = take_launched();
    moved |= finish_messages(look);
    for (std::size_t i = 0; i < active_.size();) {
      Operation& operation = slots_[active_[i]]->operation;
      moved |= operation.advance(*transport_);
      if (operation.done() && transport_->has_arrived(operation.tag())) {
        retire(i);
        moved = true;
      } else {
        ++i;
      }
    }
    if (moved) last_move_ = Clock::now();
    return moved;
  }

  bool take_launched() {
    {
      const std::lock_guard lock(mutex_);
      // Nothing could move before: with `blocking` an operation begins when somebody waits.
      if (options_.driver == Driver::blocking && !launched_.empty()) {
        for (const std::size_t id : launched_) slots_[id]->timeline.launched = Clock::now();
      }
      taken_.insert(taken_.end(), launched_.begin(), launched_.end());
      launched_.clear();
    }
    std::size_t taken = 0;
    while (taken < taken_.size() && active_.size() < scratch_.size()) start(taken_[taken++]);
    taken_.erase(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(taken));
    return taken > 0;
  }

  void start(std::size_t id) {
    Slot& slot = *slots_[id];
    const auto free = std::find_if(scratch_.begin(), scratch_.end(), [](const Scratch& s) { return !s.used; });
    free->used = true;
    slot.scratch = static_cast<std::size_t>(free - scratch_.begin());
    slot.operation.start(next_tag_, static_cast<std::uint64_t>(id) << kStepBits, free->memory);
    next_tag_ = (next_tag_ + 1) % transport_->tag_count();
    active_.push_back(id);
  }

  bool finish_messages(Look look) {
    if (active_.empty()) return false;
    std::array<std::uint64_t, 32> tokens{};
    bool moved = false;
    for (std::size_t count = tokens.size(); count == tokens.size(); moved |= count > 0) {
      count = look == Look::again ? transport_->glance(tokens) : transport_->poll(tokens);
      for (std::size_t i = 0; i < count; ++i) {
        Operation& operation = slots_[static_cast<std::size_t>(tokens[i] >> kStepBits)]->operation;
        operation.finish_step(static_cast<schedule::StepId>(tokens[i] & 0xffffffffU));
      }
    }
    return moved;
  }

  void retire(std::size_t position) {
    Slot& slot = *slots_[active_[position]];
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(position));
    scratch_[slot.scratch].used = false;
    if (const OperationSpec& spec = slot.operation.spec(); spec.finish) spec.finish(spec.data);
    slot.timeline.finished = Clock::now();
    --under_way_;
    slot.done.store(true);
  }

  void check_deadline() const {
    const Seconds idle = Clock::now() - last_move_.load();
    const bool something_is_due = transport_->next_event() != Instant::max();  // a slow link is no stopped rank
    if (active_.empty() || idle <= options_.deadline || something_is_due) return;
    std::string stuck;
    for (const std::size_t id : active_) {
      const Operation& operation = slots_[id]->operation;
      stuck += fmt::format("{}{}: {}", stuck.empty() ? "" : "; ", operation.spec().name, operation.state());
    }
    throw RunError(
        {fmt::format("rank {}: nothing has moved for {} ({})", transport_->rank(), annulet::to_text(idle), stuck),
         "a rank is stopped, far behind or gone", "Look at that rank; --deadline sets how long to wait"});
  }

  // Where the progress thread should be at work and has no core, the thread that computes takes steps for it.
  void help() {
    if (under_way_ == 0 || Clock::now() < wakes_.load()) return;
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return std::this_thread::yield();  // it may have lost its core inside MPI
    rethrow_failure();
    step_or_fail(Look::thorough);
    helped_ = true;
  }

  // One step by a thread that has nothing else to do: nothing if something moved, else the next known event.
  std::optional<Instant> step_in_turn() {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) {
      require_that_others_move();
      return Instant::max();
    }
    rethrow_failure();
    if (step_or_fail(Look::again)) return std::nullopt;
    helped_ = true;
    check_deadline();
    return transport_->next_event();
  }

  // Another thread is stepping: it keeps the deadline, unless it hangs inside MPI.
  void require_that_others_move() const {
    if (Clock::now() - last_move_.load() <= 2 * options_.deadline) return;
    throw RunError(
        {fmt::format("rank {}: the progress thread does not come back", transport_->rank()), "MPI itself hangs"});
  }

  bool step_or_fail(Look look) {
    try {
      return step(look);
    } catch (...) {
      fail();
      throw;
    }
  }

  void rethrow_failure() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  // The progress thread: sleeps while nothing is launched, steps while anything runs.
  void progress() {
    sharpen_timer();
    try {
      while (wait_for_work()) step_until_idle();
    } catch (...) {
      fail();
    }
  }

  // Nobody steps any more; whoever waits or launches hears of the exception that is being handled.
  void fail() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    stopping_ = true;
  }

  bool wait_for_work() {
    std::unique_lock lock(mutex_);
    launched_signal_.wait(lock, [&] { return stopping_ || under_way_ > 0; });
    return !stopping_;
  }

  // The deadline is kept by whoever waits: as long as nobody does, a rank may be late.
  void step_until_idle() {
    Naps naps;
    while (!stopping_ && under_way_ > 0) {
      bool moved = false;
      Instant next_event = Instant::max();
      {
        const std::lock_guard turn(turn_);
        moved = step_or_fail(Look::thorough);
        next_event = transport_->next_event();
      }
      if (helped_.exchange(false)) naps.help();
      if (moved) naps.reset();
      nap_until(naps.next_look(next_event), naps.helped());
    }
  }

  // Meanwhile nobody helps, unless somebody did before.
  void nap_until(Instant end, bool helped) {
    if (end <= Clock::now()) return;
    if (!helped) wakes_ = end;
    std::this_thread::sleep_until(end);
    wakes_ = Instant{};
  }

  std::unique_ptr<comm::Transport> transport_;
  EngineOptions options_;
  std::vector<std::unique_ptr<Slot>> slots_;
  MemoryAccount account_{"scratch"};
  std::vector<Scratch> scratch_;     // one per operation that may be active
  std::vector<std::size_t> active_;  // oldest first
  std::vector<std::size_t> taken_;   // launched, waiting for room
  int next_tag_ = 0;
  std::atomic<Instant> last_move_{};

  std::mutex turn_;  // with `thread`: held by whoever steps
  std::mutex mutex_;
  std::condition_variable launched_signal_;
  std::vector<std::size_t> launched_;  // not yet seen by the stepping thread
  std::int64_t launches_ = 0;
  std::atomic<int> under_way_{0};    // launched and not finished
  std::atomic<Instant> wakes_{};     // until then nobody need help the progress thread
  std::atomic<bool> helped_{false};  // somebody stepped for it since it last looked
  std::atomic<bool> stopping_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

Engine::Engine(std::unique_ptr<comm::Transport> transport, const EngineOptions& options)
    : core_(std::make_unique<Core>(std::move(transport), options)) {}
Engine::~Engine() = default;

OperationId Engine::declare(OperationSpec spec) { return core_->declare(std::move(spec)); }
const OperationSpec& Engine::spec(OperationId id) const { return core_->slot_of(id).operation.spec(); }
std::size_t Engine::declared() const { return core_->declared(); }
void Engine::launch(OperationId id) { core_->launch(id); }
void Engine::wait(OperationId id) { core_->wait(id); }
void Engine::poll() { core_->poll(); }
bool Engine::finished(OperationId id) const { return core_->slot_of(id).done.load(); }
const Timeline& Engine::timeline(OperationId id) const { return core_->slot_of(id).timeline; }
Bytes Engine::scratch() const { return core_->scratch(); }

// Every operation fits into each.
Bytes Engine::planned_scratch() const {
  Bytes largest{0};
  for (std::size_t i = 0; i < declared(); ++i) {
    const OperationSpec& operation = spec(OperationId{i});
    largest = std::max(largest, Bytes(static_cast<std::int64_t>(operation.element.size)) * operation.plan->scratch);
  }
  return largest * core_->options().active;
}

Driver Engine::driver() const { return core_->options().driver; }
int Engine::rank() const { return core_->transport().rank(); }
int Engine::world() const { return core_->transport().world(); }
const comm::Traffic& Engine::traffic() const { return core_->transport().traffic(); }

void require_same_operations(const comm::Communicator& communicator, const Engine& engine) {
  std::vector<std::int64_t> sizes;
  const auto bytes_of = [&](std::size_t i) {
    const OperationSpec& spec = engine.spec(OperationId{i});
    return static_cast<std::int64_t>(spec.common_bytes > 0 ? spec.common_bytes : spec.data.size());
  };
  for (std::size_t i = 0; i < engine.declared(); ++i) sizes.push_back(bytes_of(i));
  const std::int64_t mine = static_cast<std::int64_t>(sizes.size());
  const auto counts = communicator.all_gather(std::span(&mine, 1));
  for (std::size_t r = 1; r < counts.size(); ++r) {
    if (counts[r] == counts[0]) continue;
    throw InputError({fmt::format("rank 0 declares {} operations, rank {} declares {}", counts[0], r, counts[r]),
                      "every rank must run the same ones", "Give all ranks the same configuration and data"});
  }
  const auto all = communicator.all_gather(std::span<const std::int64_t>(sizes));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t r = 1; r < counts.size(); ++r) {
      if (all[r * sizes.size() + i] == all[i]) continue;
      throw InputError({fmt::format("{}: rank 0 has {} bytes, rank {} has {}", engine.spec(OperationId{i}).name, all[i],
                                    r, all[r * sizes.size() + i]),
                        "every rank must reduce the same elements", "Give all ranks the same model and data"});
    }
  }
}

}  // namespace annulet::collectives

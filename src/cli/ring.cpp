// annulet ring: a collective, step by step: what each rank holds, what is sent where, bytes and predicted time so far.
// Without MPI from the plans of all ranks; on the ranks of an MPI world with what was really in their buffers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"
#include "annulet/comm/environment.hpp"
#include "annulet/report/collective_drawing.hpp"
#include "annulet/report/console.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/rank_gradient.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"
#include "plan_options.hpp"
#include "ring_run.hpp"
#include "terminal.hpp"
#include "trained_run.hpp"

namespace annulet::cli {
namespace {

using report::Colour;

constexpr Elements kMostValues = 65536;  // of a vector whose values are kept after every round
constexpr std::size_t kMostPieces = 128;

struct RingOptions {
  RingQuestion question;
  bool ranks_given = false;
  MachineOptions machine{.machine = "network-400g"};
  std::string show, run;
  bool play = false, plain = false;
  Seconds interval{0.5}, deadline{300};

  bool shows_values(bool world) const { return show.empty() ? world || !run.empty() : show == "values"; }
};

void add_options(CLI::App& app, RingOptions& o) {
  RingQuestion& q = o.question;
  app.add_option("--collective", q.collective,
                 "all_reduce, reduce_scatter, all_gather, broadcast, reduce or sparse_all_gather")
      ->capture_default_str();
  app.add_option("--algorithm", q.algorithm, "one of the collective's (an unknown one lists them); default: its first");
  app.add_option("--ranks", q.ranks, "1 to 16; under mpirun: as many as there are")
      ->each([&o](const std::string&) { o.ranks_given = true; })
      ->capture_default_str();
  app.add_option("--elements", q.elements, "floats of the vector")->capture_default_str();
  app.add_option("--segment", q.segment, "most elements in one message; 0: a chunk")->capture_default_str();
  app.add_option("--root", q.root, "of a broadcast or a reduce")->capture_default_str();
  app.add_option("--lengths", q.lengths, "sparse_all_gather: elements of each rank's piece, say 3,0,5,2")
      ->delimiter(',')
      ->excludes("--elements");
  app.add_option("--run", o.run, "the folder of a run of annulet train: the first elements of its ranks' gradients");
  app.add_option("--show", o.show, "ranks (whose contributions are held) or values; default: values under mpirun")
      ->check(CLI::IsMember({"ranks", "values"}));
  o.machine.add_link(app);
  app.add_flag("--play", o.play, "on a terminal: go on without keys");
  add_unit_option(app, "--interval", o.interval, parse_seconds, "0.5s", "between two steps of --play");
  app.add_flag("--plain", o.plain, "all steps after one another, without colours, as where there is no terminal");
  add_unit_option(app, "--deadline", o.deadline, parse_seconds, "300s",
                  "longest time to wait for a rank that does not move");
}

void check(RingOptions& o, int world) {
  RingQuestion& q = o.question;
  if (world > 1 && o.ranks_given && q.ranks != world) {
    throw InputError({fmt::format("--ranks {} on {} ranks", q.ranks, world), "under mpirun every rank takes part",
                      "Leave --ranks out"});
  }
  if (world > 1) q.ranks = world;
  if (world == 1 && !o.ranks_given && !q.lengths.empty()) q.ranks = static_cast<int>(q.lengths.size());
  if (o.interval <= Seconds(0) || o.interval > Seconds(3600)) {
    throw InputError({"--interval is out of range", "it is more than 0 and at most an hour", ""});
  }
}

// Ranks are on nodes of their own unless the machine says how many share one.
cost::Network network_of(const MachineOptions& options, int ranks) {
  const cost::Machine machine = options.read();
  const int on_a_node = std::max(machine.device.ranks_per_node, 1);
  std::vector<int> node(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) node[static_cast<std::size_t>(r)] = r / on_a_node;
  return machine.network(std::move(node));
}

// What is drawn, and what stands above and below it.
struct Pages {
  std::string title;
  report::CollectiveDrawing drawing;
  std::string closing;
};

std::string step_count(const SteppedCollective& stepped, int rounds) {
  const std::string steps = fmt::format("{} step{}", rounds, rounds == 1 ? "" : "s");
  return rounds != stepped.formula_steps ? steps : fmt::format("{} = {}", steps, stepped.formula);
}

std::string title_of(const SteppedCollective& stepped, const report::Replay& replay, const cost::Network& network,
                     const std::string& origin) {
  const cost::Link& link = network.ring_link();
  return fmt::format("{}: {} rank{}, {} floats, {}\n{}; predicted by {} and {} ({})\n", stepped.name, stepped.ranks(),
                     stepped.ranks() == 1 ? "" : "s", stepped.elements(), step_count(stepped, replay.rounds()), origin,
                     to_text(link.alpha), to_text(ByteRate(1 / link.beta.value())), link.source);
}

std::string bytes_text(const report::Replay& replay) {
  const auto [least, most] = std::ranges::minmax(replay.frames.back().sent);
  std::string text =
      fmt::format("sent: {} B in all; by a rank {} B", replay.sent(replay.rounds()).value(), least.value());
  return least == most ? text : text + fmt::format(" to {} B", most.value());
}

std::string dense_text(const SteppedCollective& stepped, const report::Replay& replay) {
  const Bytes vector = replay.element * stepped.elements();
  if (vector == Bytes(0)) return "";
  const double mean = replay.sent(replay.rounds()).as_double() / stepped.ranks();
  return fmt::format(", mean {:.4g} x the vector ({} B)", mean / vector.as_double(), vector.value());
}

// Why its bytes grow, where a dense all-reduce's do not.
std::string sparse_text(const SteppedCollective& stepped, const report::Replay& replay) {
  return fmt::format(
      "\npieces of different elements cannot be added on the way, so each travels whole past everyone: p-1 times the "
      "payload, {} x {} B, ever more with more ranks; a dense all-reduce sends 2 (p-1)/p, below twice the vector",
      stepped.ranks() - 1, (replay.element * stepped.elements()).value());
}

std::string closing_of(const SteppedCollective& stepped, const report::Replay& replay) {
  return bytes_text(replay) + (stepped.sparse ? sparse_text : dense_text)(stepped, replay) + '\n';
}

std::string verdict_of(const RingRun& run, const report::Replay& replay, const char* beside) {
  return fmt::format("run, step by step and at once: {} {}\n{} B counted = {} B shown\n",
                     run.agreement == Agreement::same_bits ? "equal bit for bit to" : "equal up to rounding to", beside,
                     run.counted.value(), replay.sent(replay.rounds()).value());
}

report::Replay replay_of(const SteppedCollective& stepped, const cost::Network& network) {
  report::Replay replay =
      report::replay_collective({stepped.plans, stepped.promise, stepped.chunks, Bytes(sizeof(float)), network});
  if (replay.pieces.size() <= kMostPieces) return replay;
  throw InputError({fmt::format("{} pieces cannot be drawn", replay.pieces.size()),
                    fmt::format("at most {} can", kMostPieces), "Raise --segment"});
}

void require_few_values(const SteppedCollective& stepped) {
  if (stepped.elements() <= kMostValues) return;
  throw InputError({fmt::format("{} elements are too many to keep after every step", stepped.elements()),
                    fmt::format("at most {} are", kMostValues), "Lower --elements, or draw the plans without mpirun"});
}

// The first elements of the gradients that `ranks` bring to the all-reduce of a run's first step.
std::vector<std::vector<float>> gradients_of(const std::filesystem::path& folder, const SteppedCollective& stepped,
                                             int first, int last) {
  train::Config config = read_run_config(folder);
  const std::filesystem::path weights = weights_of_run(folder);
  config.init = weights.string();
  train::validate(config);
  const train::Data data = train::load_data(config);
  std::vector<std::vector<float>> inputs;
  for (int r = first; r < last; ++r) {
    inputs.push_back(train::rank_gradient(config, data, weights, r, stepped.ranks()));
    if (std::ssize(inputs.back()) < stepped.elements()) {
      throw InputError({fmt::format("--elements {} is more than the {} gradients of the model", stepped.elements(),
                                    inputs.back().size()),
                        "", "Lower it"});
    }
    inputs.back().resize(static_cast<std::size_t>(stepped.elements()));
  }
  return inputs;
}

std::vector<std::vector<float>> inputs_of(const RingOptions& o, const SteppedCollective& stepped, int first, int last) {
  if (!o.run.empty()) return gradients_of(o.run, stepped, first, last);
  std::vector<std::vector<float>> inputs;
  for (int r = first; r < last; ++r) inputs.push_back(example_input(r, stepped.elements()));
  return inputs;
}

std::string origin_of(const RingOptions& o) { return o.run.empty() ? "" : fmt::format("gradients of {}; ", o.run); }

Colour colour_on(bool terminal) { return terminal && std::getenv("NO_COLOR") == nullptr ? Colour::ansi : Colour::none; }

std::string wrapped(const std::string& text, int width) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += report::wrap_words(text.substr(begin, end - begin), width, 0);
    begin = end + 1;
  }
  return lines;
}

std::string head_of(const Pages& pages, const report::DrawingOptions& options) {
  return wrapped(pages.title, options.width) + pages.drawing.legend(options);
}

void print_all(const Pages& pages, const report::DrawingOptions& options) {
  std::string text = head_of(pages, options);
  for (int k = 0; k <= pages.drawing.replay().rounds(); ++k) text += '\n' + pages.drawing.round(k, options);
  print_once(text + '\n' + wrapped(pages.closing, options.width));
}

// Screen after screen, where keys do not reach this process: under a launcher.
void play_without_keys(const Pages& pages, Colour colour, Seconds interval) {
  const int rounds = pages.drawing.replay().rounds();
  for (int k = 0; k <= rounds; ++k) {
    const report::DrawingOptions options{report::terminal_width(), colour};
    print_once("\x1b[H\x1b[2J" + head_of(pages, options) + '\n' + pages.drawing.round(k, options));
    if (k < rounds) std::this_thread::sleep_for(interval);
  }
  print_once('\n' + wrapped(pages.closing, report::terminal_width()));
}

// As many lines as there are rows, `last` at their end; without the head where it would leave too few.
std::string fitting(const std::string& head, const std::string& body, const std::string& last, int rows) {
  const auto lines = [](const std::string& text) { return static_cast<int>(std::ranges::count(text, '\n')); };
  const std::string all = lines(head) + lines(body) < rows ? head + body : body;
  std::size_t end = 0;
  for (int row = 0; row + 1 < rows && end < all.size(); ++row) end = all.find('\n', end) + 1;
  return all.substr(0, end) + last;
}

std::string keys_text(const Pages& pages, int round, bool playing, const ScreenSize& size) {
  const bool last = round == pages.drawing.replay().rounds();
  const std::string text = playing ? "space: pause  left: back  q: quit"
                           : last  ? "left: back  q: quit"
                                   : "space, right: next  left: back  q: quit";
  return text.substr(0, static_cast<std::size_t>(size.columns));
}

// Gives the round at which the person left.
int step_by_keys(const Pages& pages, Colour colour, const RingOptions& o) {
  KeyTerminal terminal;
  const int rounds = pages.drawing.replay().rounds();
  bool playing = o.play;
  for (int k = 0;;) {
    const ScreenSize size = terminal.size();
    const report::DrawingOptions options{size.columns, colour};
    std::string body = pages.drawing.round(k, options) + '\n';
    if (k == rounds) body += wrapped(pages.closing, size.columns) + '\n';
    terminal.show(fitting(head_of(pages, options) + '\n', body, keys_text(pages, k, playing, size), size.rows));
    const Key key = terminal.wait(playing ? std::optional(o.interval) : std::nullopt);
    if (key == Key::quit || (key == Key::timeout && k == rounds)) return k;
    if (key == Key::timeout) ++k;
    if (key == Key::next) playing ? void(playing = false) : void(k = std::min(k + 1, rounds));
    if (key == Key::back) playing = false, k = std::max(k - 1, 0);
    if (key == Key::first) k = 0;
    if (key == Key::last) k = rounds;
  }
}

void show(const Pages& pages, const RingOptions& o, bool world) {
  const bool terminal = !o.plain && report::detect_liveliness() == report::Liveliness::redraw;
  const report::DrawingOptions options{report::terminal_width(), colour_on(terminal)};
  if (terminal && !world && has_keys_and_screen()) {
    const int left_at = step_by_keys(pages, options.colour, o);
    print_once(head_of(pages, options) + '\n' + pages.drawing.round(left_at, options) + '\n' +
               wrapped(pages.closing, options.width));
  } else if (terminal && o.play) {
    play_without_keys(pages, options.colour, o.interval);
  } else {
    print_all(pages, options);
  }
}

int ring_here(RingOptions& o) {
  check(o, 1);
  const SteppedCollective stepped = stepped_collective(o.question);
  const cost::Network network = network_of(o.machine, stepped.ranks());
  report::Replay replay = replay_of(stepped, network);
  std::string closing = closing_of(stepped, replay);
  report::ReplayValues values;
  std::string origin = "read from the plans";
  if (o.shows_values(false)) {
    require_few_values(stepped);
    RingRun run = run_here(stepped, replay, inputs_of(o, stepped, 0, stepped.ranks()));
    values = std::move(run.values), origin = origin_of(o) + "run in this process";
    closing += verdict_of(run, replay, "a plain sum in rank order");
  }
  const std::string title = title_of(stepped, replay, network, origin);
  show({title, report::CollectiveDrawing(std::move(replay), std::move(values)), closing}, o, false);
  return 0;
}

std::uint64_t fingerprint(const RingOptions& o) {
  const RingQuestion& q = o.question;
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", q.collective, q.algorithm, q.ranks, q.elements, q.segment,
                                 q.root, o.run, o.show);
  for (const Elements length : q.lengths) text += fmt::format(" {}", length);
  return stable_hash(text);
}

int ring_on_world(RingOptions& o, const comm::Environment& environment) {
  const comm::Communicator& world = environment.world();
  world.set_deadline(o.deadline);
  SteppedCollective stepped;
  cost::Network network;
  report::Replay replay;
  std::vector<float> input;
  train::agree_on(world, [&] {
    check(o, world.size());
    stepped = stepped_collective(o.question);
    require_few_values(stepped);
    network = network_of(o.machine, stepped.ranks());
    replay = replay_of(stepped, network);
    input = inputs_of(o, stepped, world.rank(), world.rank() + 1).front();
  });
  train::require_equal(world, fingerprint(o),
                       {"the options are not the same on all ranks", "every rank must take the same steps",
                        "Give all ranks the same arguments"});
  RingRun run = run_on_world(world, o.deadline, stepped, replay, std::move(input));
  if (world.rank() != 0) return 0;
  const std::string closing = closing_of(stepped, replay) + verdict_of(run, replay, "MPI_Allreduce");
  const std::string title = title_of(stepped, replay, network, origin_of(o) + "run by " + environment.library());
  if (!o.shows_values(true)) run.values.clear();
  show({title, report::CollectiveDrawing(std::move(replay), std::move(run.values)), closing}, o, true);
  return 0;
}

}  // namespace

int ring(const Arguments& arguments) {
  RingOptions options;
  CLI::App app("Steps through a collective: what each rank holds, what is sent where, bytes and predicted time so far.",
               "annulet ring");
  add_options(app, options);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) return print_once(help), 0;
  const auto launched = comm::launcher_count();
  if (!launched || launched->processes == 1) return ring_here(options);
  const comm::Environment environment;
  return on_all_ranks("ring", environment, [&] { return ring_on_world(options, environment); });
}

}  // namespace annulet::cli

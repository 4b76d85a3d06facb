#include "terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace annulet::cli {
namespace {

constexpr const char* kEnterScreen = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeaveScreen = "\x1b[?25h\x1b[?1049l";

// Signals are let in only while waiting for a key, so whatever they ask for happens between two screens.
volatile std::sig_atomic_t last_signal = 0;

void note_signal(int number) { last_signal = number; }

void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Sequence {
  std::string_view typed;
  Key key;
};
constexpr Sequence kKeys[] = {{" ", Key::next},       {"\x1b[C", Key::next},  {"\x1bOC", Key::next},
                              {"\n", Key::next},      {"\r", Key::next},      {"n", Key::next},
                              {"l", Key::next},       {"\x1b[D", Key::back},  {"\x1bOD", Key::back},
                              {"\x7f", Key::back},    {"b", Key::back},       {"h", Key::back},
                              {"\x1b[H", Key::first}, {"\x1bOH", Key::first}, {"\x1b[1~", Key::first},
                              {"\x1b[F", Key::last},  {"\x1bOF", Key::last},  {"\x1b[4~", Key::last},
                              {"q", Key::quit},       {"Q", Key::quit},       {"\x04", Key::quit}};

}  // namespace

KeyTerminal::KeyTerminal() {
  tcgetattr(STDIN_FILENO, &before_);
  last_signal = 0;
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int number : kSignals) sigaddset(&blocked, number);
  pthread_sigmask(SIG_BLOCK, &blocked, &mask_before_);
  struct sigaction note {};
  note.sa_handler = note_signal;
  sigemptyset(&note.sa_mask);
  for (std::size_t s = 0; s < kSignals.size(); ++s) {
    sigaction(kSignals[s], nullptr, &actions_before_[s]);
    if (actions_before_[s].sa_handler != SIG_IGN) sigaction(kSignals[s], &note, nullptr);
  }
  enter();
}

KeyTerminal::~KeyTerminal() {
  leave();
  for (std::size_t s = 0; s < kSignals.size(); ++s) sigaction(kSignals[s], &actions_before_[s], nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  if (ended_by_ != 0) std::raise(ended_by_);
}

ScreenSize KeyTerminal::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

void KeyTerminal::show(const std::string& lines) {
  std::string screen = "\x1b[H\x1b[2J";
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    screen += (begin > 0 ? "\r\n" : "") + lines.substr(begin, end - begin);
    begin = end + 1;
  }
  write_out(screen);
}

Key KeyTerminal::wait(std::optional<Seconds> most) {
  timespec timeout{};
  if (most) {
    timeout.tv_sec = static_cast<time_t>(most->count());
    timeout.tv_nsec = static_cast<long>((most->count() - static_cast<double>(timeout.tv_sec)) * 1e9);
  }
  while (typed_.empty()) {
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    const int ready = ppoll(&keys, 1, most ? &timeout : nullptr, &mask_before_);
    if (last_signal != 0) return after_signal(std::exchange(last_signal, 0));
    if (ready == 0) return Key::timeout;
    if (ready < 0) continue;
    std::array<char, 64> bytes{};
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0) return Key::quit;  // the terminal is gone
    typed_.assign(bytes.data(), static_cast<std::size_t>(count));
  }
  return take_key();
}

Key KeyTerminal::take_key() {
  for (const auto& [sequence, key] : kKeys) {
    if (!typed_.starts_with(sequence)) continue;
    typed_.erase(0, sequence.size());
    return key;
  }
  const bool sequence = typed_.front() == '\x1b';  // of a key that means nothing here
  sequence ? typed_.clear() : void(typed_.erase(0, 1));
  return Key::other;
}

Key KeyTerminal::after_signal(int number) {
  if (number == SIGWINCH) return Key::redraw;
  if (number != SIGTSTP) return ended_by_ = number, Key::quit;
  leave();
  std::raise(SIGSTOP);
  enter();
  return Key::redraw;
}

void KeyTerminal::enter() {
  termios keys = before_;
  keys.c_lflag &= static_cast<tcflag_t>(~(ICANON | ECHO));
  keys.c_cc[VMIN] = 1, keys.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys);
  write_out(kEnterScreen);
}

void KeyTerminal::leave() {
  write_out(kLeaveScreen);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

bool has_keys_and_screen() {
  const char* kind = std::getenv("TERM");
  const bool screens = kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
  return screens && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
}

}  // namespace annulet::cli

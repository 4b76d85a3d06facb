#pragma once
// A terminal of keys and whole screens: while the object lives, keys come one by one without echo, and screens are
// drawn on the terminal's alternate screen. Everything is as it was before when the object goes, also after Ctrl-C, a
// hangup or a kill (which then end the program as they would have), and while the program is stopped by Ctrl-Z.
#include <array>
#include <csignal>
#include <optional>
#include <string>

#include <termios.h>

#include "annulet/base/units.hpp"

namespace annulet::cli {

enum class Key { next, back, first, last, quit, other, timeout, redraw };

struct ScreenSize {
  int rows = 24, columns = 80;
};

class KeyTerminal {
 public:
  KeyTerminal();
  ~KeyTerminal();
  KeyTerminal(const KeyTerminal&) = delete;
  KeyTerminal& operator=(const KeyTerminal&) = delete;

  ScreenSize size() const;

  // Replaces the screen by these lines, of which there are no more than rows.
  void show(const std::string& lines);

  // The next key; `redraw` where the terminal has changed its size or was taken away meanwhile.
  Key wait(std::optional<Seconds> most);

 private:
  void enter();
  void leave();
  Key after_signal(int number);
  Key take_key();

  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

  termios before_{};
  std::array<struct sigaction, kSignals.size()> actions_before_{};
  sigset_t mask_before_{};
  std::string typed_;  // read, not yet taken
  int ended_by_ = 0;
};

// Whether a person sits at both ends: keys in, screens out.
bool has_keys_and_screen();

}  // namespace annulet::cli

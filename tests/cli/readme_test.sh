#!/usr/bin/env bash
# Every annulet command of the README runs as it stands there (cut to a few steps, launched as the tests launch).
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

ln -s "$ANNULET_SOURCE/configs" configs
mpirun() {
  [ "$1" = -n ] || fail "the README launches without -n"
  launch "$2" "$annulet" "${@:4}"
}

commands=$(awk '/^```sh/ {inside = 1; next} /^```/ {inside = 0} inside && /^(mpirun|annulet) /' "$ANNULET_SOURCE/README.md")
[ "$(wc -l <<<"$commands")" -ge 4 ] || fail "the README's commands were not found"
while read -r -a words; do
  words=("${words[@]//\'/}")
  case "${words[*]}" in
    *fashion-mnist*) [ -d /usr/share/datasets/fashion-mnist ] || continue ;;
    *gpt-text* | *runs/jargon*) [ -e /usr/share/doc/jargon-text/jargon.txt.gz ] || continue ;;
  esac
  case "${words[*]}" in
    *" calibrate "* | *slow.toml*) continue ;;  # slow: bench_test.sh runs them on a quicker link
    *--help | *--steps*) ;;
    *" train "*) words+=(--steps 5) ;;
  esac
  if [ "${words[0]}" = annulet ]; then words[0]=$annulet; fi
  expect_success "${words[@]}" </dev/null
done <<<"$commands"

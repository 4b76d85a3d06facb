#!/usr/bin/env bash
# A cluster in a box: hosts that are network namespaces on one bridge, each with one core, a card of its own rate, real
# TCP between them, and a name of its own, so that MPI takes them for nodes. As root, with iproute2; nothing leaves this machine.
#   cluster.sh up HOSTS RATE       HOSTS of them, cards of RATE in and out: 1gbit, 200mbit
#   cluster.sh rate RATE           another rate for all cards
#   cluster.sh run RANKS CMD...    RANKS of a command, on one host after the other; RANKS_PER_HOST (1)
#   cluster.sh wire                bytes that each card has sent
#   cluster.sh down
#   cluster.sh can                 whether this machine can: says why not, and fails
# MPIRUN_ARGS are given to the launcher (--map-by node), SECONDS_MOST ends a job that hangs (300); TCP_LINKS (2) of a pair of
# hosts; CONGESTION, TCP's, is reno, which every kernel has (BBR, some machines' default, is no match for predictions:
# include/annulet/measure/congestion.hpp); CLUSTER_NET (10.77.0). BURST (9kb): bytes that a card lets pass at once after it
# was idle; PIECE: the largest that the kernel hands it (16000, below 500mbit 8000; twice as much for more hosts than
# cores); QUEUED (131072): most bytes of a connection that wait for the card.
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

net=${CLUSTER_NET:-10.77.0}
bridge=annulet0
# With more of either more small messages outrun the rate. Smaller bursts lose some of it to late timers; smaller pieces
# take more of the cores, of which a slow card leaves enough and hosts that share them do not. Real cards cut pieces
# themselves: PIECE=65536 takes a third of the core time, which counts for training.
burst=${BURST:-9kb} piece=${PIECE:-}
# Acknowledgements wait behind what is queued: with the megabytes that kernels allow (4 MiB in 6.18: 34 ms at 1 Gb/s) two
# hosts that send to each other share the rate of one as soon as a window shrinks, and windows do, since virtual cards
# that two cores serve now and then swap packets.
queued=${QUEUED:-131072}

host() { printf 'annulet-host%s' "$1"; }
hosts() { ip netns list 2>/dev/null | sed -n 's/^annulet-host\([0-9]*\).*/\1/p' | sort -n; }

refuse() { die "cluster: $1. $2"; }

can() {
  [ "$(id -u)" -eq 0 ] || { echo "not root"; return 1; }
  command -v ip >/dev/null && command -v tc >/dev/null || { echo "iproute2 is not installed"; return 1; }
  local probe=annulet-probe$$ reason=
  ip netns add "$probe" 2>/dev/null || { echo "network namespaces are not allowed here"; return 1; }
  ip -n "$probe" link add anprobe type veth peer name anprobe2 2>/dev/null || reason="no virtual Ethernet here"
  if [ -z "$reason" ]; then
    ip netns exec "$probe" tc qdisc add dev anprobe root htb 2>/dev/null ||
      reason="this kernel does not limit rates (htb)"
  fi
  ip netns del "$probe"
  [ -z "$reason" ] || { echo "$reason"; return 1; }
}

need() {
  local reason
  reason=$(can) || refuse "$reason" "A cluster in a box needs root, iproute2 and network namespaces."
}

shape() {
  local tc=(ip netns exec "$(host "$1")" tc)
  "${tc[@]}" qdisc del dev eth0 root 2>/dev/null || true
  "${tc[@]}" qdisc add dev eth0 root handle 1: htb default 1
  "${tc[@]}" class add dev eth0 parent 1: classid 1:1 htb rate "$2" ceil "$2" burst "$burst" cburst "$burst" quantum 64000 ||
    refuse "'$2' is no rate" "Write 1gbit or 200mbit."
  local largest=16000
  if [[ $2 =~ ^([0-9]+)mbit$ ]] && [ "${BASH_REMATCH[1]}" -lt 500 ]; then largest=8000; fi
  if [ "$(hosts | wc -l)" -gt "$(nproc)" ]; then largest=$((2 * largest)); fi
  ip -n "$(host "$1")" link set dev eth0 gso_max_size "${piece:-$largest}"
}

up() {
  local count=$1 rate=$2 k
  [[ $count =~ ^[1-9][0-9]?$ ]] || refuse "'$count' is no number of hosts" "Give 1 to 99."
  need
  [ -z "$(hosts)" ] || refuse "there is a cluster already ($(hosts | wc -l) hosts)" "Use it, or 'cluster.sh down' first."
  trap down EXIT
  ip link add "$bridge" type bridge
  ip addr add "$net.254/24" dev "$bridge"
  ip link set "$bridge" up
  for ((k = 1; k <= count; ++k)); do
    ip netns add "$(host $k)"
    ip link add "anlink$k" type veth peer name eth0 netns "$(host $k)"
    ip link set "anlink$k" master "$bridge" up
    ip -n "$(host $k)" addr add "$net.$k/24" dev eth0
    ip -n "$(host $k)" link set eth0 up
    ip -n "$(host $k)" link set lo up
    ip netns exec "$(host $k)" sysctl -qw net.ipv4.tcp_slow_start_after_idle=0 \
      net.ipv4.tcp_congestion_control="${CONGESTION:-reno}" net.ipv4.tcp_limit_output_bytes="$queued"
  done
  for ((k = 1; k <= count; ++k)); do shape $k "$rate"; done
  trap - EXIT
  say "$count hosts, $net.1 to $net.$count, cards of $rate"
}

down() {
  local k
  for k in $(hosts); do ip netns del "$(host "$k")"; done
  ip link del "$bridge" 2>/dev/null || true
}

# run RANKS CMD...
run() {
  local ranks=$1 per_host=${RANKS_PER_HOST:-1} k list='' agent code=0
  shift
  [ -n "$(hosts)" ] || refuse "there is no cluster" "Run 'cluster.sh up 2 1gbit' first."
  [[ $ranks =~ ^[1-9][0-9]*$ ]] || refuse "'$ranks' is no number of ranks" "Give 1 or more."
  [ "$ranks" -le $(($(hosts | wc -l) * per_host)) ] ||
    refuse "$(hosts | wc -l) hosts of $per_host rank(s) are too few for $ranks" "Bring up more, or set RANKS_PER_HOST."
  for k in $(hosts); do list+="$net.$k:$per_host,"; done
  agent=$(mktemp)
  # What ssh would be: enters the host of that address, whose name MPI goes by, and takes its core, which several hosts may
  # share.
  cat >"$agent" <<'AGENT'
#!/usr/bin/env bash
k=${1##*.}
shift
exec taskset -c "$(((k - 1) % $(nproc)))" ip netns exec "annulet-host$k" unshare --uts sh -c 'hostname "$1"; shift; eval "$*"' sh "host$k" "$@"
AGENT
  chmod +x "$agent"
  local extra=()
  read -r -a extra <<<"${MPIRUN_ARGS:-}"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MPIEXEC_TIMEOUT=${SECONDS_MOST:-300} \
    "$(cached MPIEXEC_EXECUTABLE)" --mca plm_rsh_agent "$agent" --host "${list%,}" -np "$ranks" --bind-to none \
    --mca btl self,vader,tcp --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include "$bridge,eth0" \
    --mca btl_tcp_links "${TCP_LINKS:-2}" --mca mpi_yield_when_idle 1 ${extra[@]+"${extra[@]}"} "$@" || code=$?
  rm -f -- "$agent"
  return $code
}

wire() {
  local k
  for k in $(hosts); do
    printf '%s %s\n' "$(host "$k")" "$(ip netns exec "$(host "$k")" cat /sys/class/net/eth0/statistics/tx_bytes)"
  done
}

case ${1:-} in
up) [ $# -eq 3 ] || die "usage: cluster.sh up HOSTS RATE"; up "$2" "$3" ;;
rate) [ $# -eq 2 ] || die "usage: cluster.sh rate RATE"; for k in $(hosts); do shape "$k" "$2"; done ;;
run) [ $# -ge 3 ] || die "usage: cluster.sh run RANKS COMMAND..."; shift; run "$@" ;;
wire) wire ;;
down) down ;;
can) can ;;
*) sed -n 's/^# \{0,1\}//p' "$0" | sed -n 2,14p >&2; exit 2 ;;
esac

# shellcheck shell=bash
# Sourced. start_server LOG FLAGS…: starts the tensord of $server_binaries (default: build/release/bin) and
# returns once it listens. Sets
#   server_pid       its process
#   server_target    the gRPC address of its first listener, unix:/… or host:port
#   server_metrics   host:port of its metrics endpoint, empty without one
# stop_server: SIGTERM, then waits; its status is the server's. The caller stops what it starts, in a trap too.

server_pid='' server_target='' server_metrics=''

start_server() {
  local log=$1 fifo line fd
  shift
  server_target='' server_metrics=''
  : >"$log"
  fifo=$(mktemp --dry-run --tmpdir tensord-stdout.XXXXXX)
  mkfifo "$fifo"
  "${server_binaries:-build/release/bin}/tensord" "$@" >"$fifo" 2>>"$log" </dev/null &
  server_pid=$!
  exec {fd}<"$fifo"
  rm "$fifo"

  # The addresses come one a line, as soon as the server is ready, the gRPC listeners' among them; then "ready".
  while read -r -t 60 -u "$fd" line; do
    echo "$line" >>"$log"
    case $line in
      'listening grpc '*) [[ -n $server_target ]] || server_target=${line#listening grpc } ;;
      'listening metrics '*) server_metrics=${line#listening metrics } ;;
    esac
    [[ -n $server_target && ($* != *--metrics=* || -n $server_metrics) ]] && break
  done
  if [[ -z $server_target ]]; then
    echo "The server did not start. Its log:" >&2
    cat "$log" >&2
    stop_server || true
    return 1
  fi
  # Its further output must have a reader.
  cat <&"$fd" >>"$log" &
  exec {fd}<&-
}

stop_server() {
  [[ -n $server_pid ]] || return 0
  local status=0
  kill -TERM "$server_pid" 2>/dev/null || true
  wait "$server_pid" || status=$?
  server_pid=''
  return $status
}

# For scripts that run in stages: `stage NAME COMMAND...` runs the command, prints how long it took, and ends the script if it failed.
stage() {
  local name=$1 begin=$SECONDS
  shift
  printf '\n=== %s\n' "$name"
  # Not inside a condition: there `set -e` would not hold in the command.
  "$@"
  printf '=== %s: %d s\n' "$name" $((SECONDS - begin))
}
